/* HunyuanVL and HunyuanOCR: vision encoder. conversion/hunyuan.py, HunyuanVLVisionModel. */
#include "models/projectors/projector.h"

static const struct relation_row tensors[] = {
    {"vit.embeddings.patch_embedding", "v.patch_embd"},
    {"vit.embeddings.position_embedding.weight", "v.position_embd.weight", "(padding + row) c -> row c"},
    {"vit.layers.{}.input_layernorm", "v.blk.{}.ln1"},
    {"vit.layers.{}.post_attention_layernorm", "v.blk.{}.ln2"},
    {"vit.layers.{}.self_attn.q_proj", "v.blk.{}.attn_q"},
    {"vit.layers.{}.self_attn.k_proj", "v.blk.{}.attn_k"},
    {"vit.layers.{}.self_attn.v_proj", "v.blk.{}.attn_v"},
    {"vit.layers.{}.self_attn.o_proj", "v.blk.{}.attn_out"},
    {"vit.layers.{}.mlp.dense_h_to_4h", "v.blk.{}.ffn_up"},
    {"vit.layers.{}.mlp.dense_4h_to_h", "v.blk.{}.ffn_down"},
    {"vit.perceive.before_rms", "mm.pre_norm"},
    {"vit.perceive.proj.{}", "mm.{}"},
    {"vit.perceive.mlp", "mm.model.fc"},
    {"vit.perceive.after_rms", "mm.post_norm"},
    {"vit.perceive.image_newline", "v.image_newline"},
    {"vit.perceive.image_sep", "v.view_seperator"},
    {"vit.perceive.image_begin", "mm.image_begin"},
    {"vit.perceive.image_end", "mm.image_end"},
    {0},
};

/* Sets image_size, and drops the first position, that of a class token, which has no use here. */
static bool adjust(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    double size;
    dimensions_set(&builder->dimensions, "padding", 1);
    if (!builder_number(builder, "image_size|max_image_size", 2048, &size, error))
        return false;
    if (!(size >= 0 && size <= UINT32_MAX))
        return error_set(error, "config.json: max_image_size is %.17g", size);
    return hparams_override(hparams, "image_size", (uint64_t)size, error);
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("hunyuanvl"),
    FLAG("use_gelu"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "rms_norm_eps", 1e-5},
    {"vision.spatial_merge_size", GGUF_U32, OR_DEFAULT, "spatial_merge_size", 2},
    {"vision.image_min_pixels", GGUF_U32, REQUIRED, "preprocessor.min_pixels"},
    {"vision.image_max_pixels", GGUF_U32, REQUIRED, "preprocessor.max_pixels"},
    {0},
};

const struct family hunyuanvl_projector = {
    .name = "hunyuanvl",
    .summary = "HunyuanVL (vision encoder)",
    .hf = FAMILY_NAMES({"HunYuanVLForConditionalGeneration"}),
    .tensors = {tensors},
    .keys = {tower_keys, vision_keys, keys},
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("vit."),
                   .f16_or_f32_names = TEXTS("mm.0.weight", "mm.2.weight")),
    .adjust = adjust,
};
