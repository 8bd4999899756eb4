#include "models/diffusion/architecture.h"

#include <string.h>

#define LIST(...)  ((const char *const[]){__VA_ARGS__, NULL})
#define RANKS(...) ((const struct diffusion_rank[]){__VA_ARGS__, {NULL, 0}})

/* clang-format off */

static const struct diffusion_architecture flux = {
    .name = "flux",
    .summary = "Flux",
    .names = {LIST("single_transformer_blocks.0.attn.norm_k.weight"), LIST("double_blocks.0.img_attn.proj.weight")},
    .banned = "single_transformer_blocks.0.attn.norm_k.weight",
    .kept = LIST("txt_in.", "img_in.", "time_in.", "vector_in.", "guidance_in.", "final_layer.",
                 "single_stream_modulation.", "double_stream_modulation_"),
};

static const struct diffusion_architecture sd3 = {
    .name = "sd3",
    .summary = "Stable Diffusion 3",
    .names = {LIST("transformer_blocks.0.ff_context.net.0.proj.weight"), LIST("joint_blocks.0.x_block.attn.qkv.weight")},
    .banned = "transformer_blocks.0.ff_context.net.0.proj.weight",
    .kept = LIST("final_layer.", "time_text_embed.", "context_embedder.", "t_embedder.", "y_embedder.", "x_embedder.",
                 "=proj_out.weight", "=pos_embed"),
    .ranks = RANKS({"=pos_embed", 3}),
};

static const struct diffusion_architecture aura = {
    .name = "aura",
    .summary = "AuraFlow",
    .names = {LIST("double_layers.3.modX.1.weight"),
              LIST("joint_transformer_blocks.3.ff_context.out_projection.weight")},
    .banned = "joint_transformer_blocks.3.ff_context.out_projection.weight",
    .kept = LIST("t_embedder.", "init_x_linear.", "=modF.1.weight", "=cond_seq_linear.weight", "=final_linear.weight",
                 "=positional_encoding", "=register_tokens"),
    .ranks = RANKS({"=positional_encoding", 3}, {"=register_tokens", 3}),
};

static const struct diffusion_architecture hidream = {
    .name = "hidream",
    .summary = "HiDream",
    .names = {LIST("caption_projection.0.linear.weight",
                   "double_stream_blocks.0.block.ff_i.shared_experts.w3.weight")},
    .precise = LIST(".ff_i.gate.weight", "img_emb.emb_pos"),
    .kept = LIST("p_embedder.", "t_embedder.", "x_embedder.", "final_layer.", ".ff_i.gate.weight",
                 "caption_projection."),
};

static const struct diffusion_architecture cosmos = {
    .name = "cosmos",
    .summary = "Cosmos Predict 2",
    .names = {LIST("blocks.0.mlp.layer1.weight", "blocks.0.adaln_modulation_cross_attn.1.weight")},
    .precise = LIST("pos_embedder"),
    .ignored = LIST("_extra_state", "accum_"),
    .kept = LIST("p_embedder.", "t_embedder.", "t_embedding_norm.", "x_embedder.", "pos_embedder.", "final_layer."),
};

static const struct diffusion_architecture qwen_image = {
    .name = "qwen_image",
    .summary = "Qwen-Image",
    .names = {LIST("time_text_embed.timestep_embedder.linear_2.weight", "transformer_blocks.0.attn.norm_added_q.weight",
                   "transformer_blocks.0.img_mlp.net.0.proj.weight")},
    .kept = LIST("img_in.", "txt_in.", "time_text_embed.", "proj_out.", "norm_out."),
    .spares_both_ends = true,
};

static const struct diffusion_architecture ltxv = {
    .name = "ltxv",
    .summary = "LTX-Video",
    .names = {LIST("adaln_single.emb.timestep_embedder.linear_2.weight", "transformer_blocks.27.scale_shift_table",
                   "caption_projection.linear_2.weight")},
    .precise = LIST("scale_shift_table"),
    .kept = LIST("adaln_single.", "caption_projection.", "patchify_proj.", "proj_out.", "scale_shift_table"),
};

static const struct diffusion_architecture hyvid = {
    .name = "hyvid",
    .summary = "HunyuanVideo",
    .names = {LIST("double_blocks.0.img_attn_proj.weight",
                   "txt_in.individual_token_refiner.blocks.1.self_attn_qkv.weight")},
    .kept = LIST("txt_in.", "img_in.", "time_in.", "vector_in.", "guidance_in.", "final_layer."),
    .holds_videos = true,
    .names_attention_v = true,
};

static const struct diffusion_architecture wan = {
    .name = "wan",
    .summary = "Wan",
    .names = {LIST("blocks.0.self_attn.norm_q.weight", "text_embedding.2.weight", "head.modulation")},
    .precise = LIST(".modulation", ".encoder.padding_tokens", "trainable_cond_mask", "casual_audio_encoder.weights",
                    "casual_audio_encoder.encoder.conv"),
    .kept = LIST("modulation.", "patch_embedding.", "text_embedding.", "time_projection.", "time_embedding.",
                 "img_emb.", "head.", "cond_encoder.", "frame_packer.", "audio_injector.", "casual_audio_encoder.",
                 "trainable_cond_mask."),
    .ranks = RANKS({".modulation", 3}, {"=img_emb.emb_pos", 3}, {"=casual_audio_encoder.weights", 4},
                   {"=casual_audio_encoder.encoder.padding_tokens", 4}),
    .holds_videos = true,
};

static const struct diffusion_architecture sdxl = {
    .name = "sdxl",
    .summary = "Stable Diffusion XL",
    .names = {LIST("down_blocks.0.downsamplers.0.conv.weight", "add_embedding.linear_1.weight"),
              LIST("input_blocks.3.0.op.weight", "input_blocks.6.0.op.weight", "output_blocks.2.2.conv.weight",
                   "output_blocks.5.2.conv.weight"),
              LIST("label_emb.0.0.weight")},
    .kept = LIST("class_embedding.", "time_embedding.", "add_embedding.", "time_embed.", "label_emb.", "conv_in.",
                 "conv_out.", "=input_blocks.0.0.weight", "=out.2.weight"),
    .rearranges = true,
};

static const struct diffusion_architecture sd1 = {
    .name = "sd1",
    .summary = "Stable Diffusion 1 or 2",
    .names = {LIST("down_blocks.0.downsamplers.0.conv.weight"),
              LIST("input_blocks.3.0.op.weight", "input_blocks.6.0.op.weight", "input_blocks.9.0.op.weight",
                   "output_blocks.2.1.conv.weight", "output_blocks.5.2.conv.weight", "output_blocks.8.2.conv.weight")},
    .kept = LIST("class_embedding.", "time_embedding.", "add_embedding.", "time_embed.", "label_emb.", "conv_in.",
                 "conv_out.", "=input_blocks.0.0.weight", "=out.2.weight"),
    .rearranges = true,
};

static const struct diffusion_architecture lumina2 = {
    .name = "lumina2",
    .summary = "Lumina 2 or Z-Image",
    .names = {LIST("cap_embedder.1.weight", "context_refiner.0.attention.qkv.weight")},
    .precise = LIST("x_pad_token", "cap_pad_token"),
    .kept = LIST("t_embedder.", "x_embedder.", "final_layer.", "cap_embedder.", "context_refiner.", "noise_refiner.",
                 "x_pad_token.", "cap_pad_token."),
    .ranks = RANKS({"=x_pad_token", 2}, {"=cap_pad_token", 2}),
};

/* clang-format on */

/* In the converter's order: the first that fits counts. */
const struct diffusion_architecture *const diffusion_architectures[] = {
    &flux, &sd3, &aura, &hidream, &cosmos, &qwen_image, &ltxv, &hyvid, &wan, &sdxl, &sd1, &lumina2, NULL,
};

const struct diffusion_architecture *diffusion_architecture_named(const char *name)
{
    const struct diffusion_architecture *const *row = diffusion_architectures;
    while (*row != NULL && (name == NULL || strcmp((*row)->name, name) != 0))
        row++;
    return *row;
}

static bool has_all(const struct tensor_set *tensors, const char *const *names)
{
    for (; *names != NULL; names++)
        if (tensor_set_find_text(tensors, *names) == NULL)
            return false;
    return true;
}

const struct diffusion_architecture *diffusion_architecture_of(const struct tensor_set *tensors)
{
    for (const struct diffusion_architecture *const *row = diffusion_architectures; *row != NULL; row++)
        for (const char *const *const *names = (*row)->names; *names != NULL; names++)
            if (has_all(tensors, *names))
                return *row;
    return NULL;
}

bool diffusion_name_matches(const char *const *parts, const char *name)
{
    for (; parts != NULL && *parts != NULL; parts++)
        if (**parts == '=' ? strcmp(name, *parts + 1) == 0 : strstr(name, *parts) != NULL)
            return true;
    return false;
}
