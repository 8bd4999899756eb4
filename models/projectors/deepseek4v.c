/* DeepSeek V4 with pictures: vision encoder, which config.json describes by keys of its own. conversion/deepseek.py,
 * DeepseekV4FlashVisionModel. */
#include "models/projectors/projector.h"

#define BLOCK "vision.blocks.{}."

static const struct relation_row tensors[] = {
    {"vision.patch_embed.proj.weight", "v.patch_embd.weight", "o (part y x) -> o part y x"},
    {"vision.patch_embed.proj.bias", "v.patch_embd.bias"},
    {"vision.norm", "v.post_ln"},
    {BLOCK "norm1", "v.blk.{}.ln1"},
    {BLOCK "norm2", "v.blk.{}.ln2"},
    {BLOCK "attn.wqkv", "v.blk.{}.attn_qkv"},
    {BLOCK "attn.wo", "v.blk.{}.attn_out"},
    {BLOCK "mlp.w1.weight", "v.blk.{}.ffn_gate.weight, v.blk.{}.ffn_up.weight", "(gate + up) c -> gate c, up c"},
    {BLOCK "mlp.w1.bias", "v.blk.{}.ffn_gate.bias, v.blk.{}.ffn_up.bias", "(gate + up) -> gate, up"},
    {BLOCK "mlp.w2", "v.blk.{}.ffn_down"},
    {"aligner.w{}", "mm.{}"},
    {"image_newline", "v.image_newline"},
    {"image_start", "v.token_embd.img_start"},
    {"image_end", "v.token_embd.img_end"},
    {"image_pad", "v.token_embd.img_pad"},
    {0},
};

/* Checks what llama.cpp has as constants, and counts the layers, which are not those of the text model. */
static bool adjust(struct model_builder *builder, struct error *error)
{
    uint64_t n_layers, n_tokens, ratio;
    const struct hparams *hparams = builder->model->hparams;
    if (!hparams_count(hparams, "vision_n_layers", 1, UINT32_MAX, &n_layers, error) ||
        !hparams_count(hparams, "vision_max_n_token", 0, UINT32_MAX, &n_tokens, error) ||
        !hparams_count(hparams, "vision_max_wh_ratio", 0, UINT32_MAX, &ratio, error))
        return false;
    builder->dimensions.n_layers = n_layers;
    return (n_tokens == 384 && ratio == 8) ||
           error_set(error, "config.json: vision_max_n_token is not 384, or vision_max_wh_ratio not 8, which llama.cpp "
                            "takes for granted");
}

static bool emit_normalization(struct model_builder *builder, struct error *error)
{
    static const double half[3] = {0.5, 0.5, 0.5};
    return emit_normalization_or(builder, half, half, error);
}

static const struct key_row keys[] = {
    FLAG("has_vision_encoder"),
    {"vision.projection_dim", GGUF_U32, REQUIRED, "text.hidden_size|text.n_embd"},
    {"vision.image_size", GGUF_U32, REQUIRED, "vision_patch_size", .by = "vision_downsample_ratio", .times = 16},
    {"vision.patch_size", GGUF_U32, REQUIRED, "vision_patch_size"},
    {"vision.embedding_length", GGUF_U32, REQUIRED, "vision_dim"},
    {"vision.feed_forward_length", GGUF_U32, REQUIRED, "vision_inter_dim"},
    {"vision.block_count", GGUF_U32, REQUIRED, "vision_n_layers"},
    {"vision.attention.head_count", GGUF_U32, REQUIRED, "vision_n_heads"},
    {.emit = emit_normalization},
    PROJECTOR_TYPE("deepseek4v"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-6},
    FLAG("use_silu"),
    {"vision.projector.scale_factor", GGUF_U32, REQUIRED, "vision_downsample_ratio"},
    {"vision.image_min_pixels", GGUF_U32, REQUIRED, "vision_min_pixels"},
    {0},
};

const struct family deepseek4v_projector = {
    .name = "deepseek4v",
    .summary = "DeepSeek V4 (vision encoder)",
    .since = 11549,
    .hf = FAMILY_NAMES({"DeepseekV4ForCausalLM"}),
    .tensors = {tensors},
    .keys = {tower_keys, keys},
    .tower = TOWER(.config = {.vision_layers = "vision_n_layers"}, .parts = TEXTS("vision.", "aligner.", "image_")),
    .dimensions = {DIMENSIONS({"y", "vision_patch_size"}, {"x", "vision_patch_size"})},
    .adjust = adjust,
};
