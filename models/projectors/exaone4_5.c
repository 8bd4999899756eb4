/* EXAONE 4.5: vision encoder, a Qwen2.5-VL whose heads share keys. conversion/exaone.py, Exaone4_5VisionModel. */
#include "models/projectors/projector.h"

static bool adjust(struct model_builder *builder, struct error *error)
{
    dimensions_set(&builder->dimensions, "gated", 1);
    return hparams_default(builder->model->hparams, "{'image_size': 560}", error);
}

static bool emit_windows(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[] = {{"vision.n_wa_pattern", GGUF_U32, .compute = compute_window_pattern}, {0}};
    const struct json *full = hparams_get(builder->model->hparams, "fullatt_block_indexes");
    return !json_is(full, JSON_ARRAY) || json_count(full) == 0 || builder_emit(builder, rows, error);
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("exaone4_5"),
    FLAG("use_silu"),
    {"vision.image_min_pixels", GGUF_U32, REQUIRED, "preprocessor.min_pixels"},
    {"vision.image_max_pixels", GGUF_U32, REQUIRED, "preprocessor.max_pixels"},
    {"vision.attention.head_count_kv", GGUF_U32, IF_PRESENT, "num_key_value_heads"},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "rms_norm_eps|outer.rms_norm_eps", 1e-6},
    {"vision.window_size", GGUF_U32, IF_PRESENT, "window_size"},
    {.emit = emit_windows},
    {0},
};

const struct family exaone4_5_projector = {
    .name = "exaone4_5",
    .summary = "EXAONE 4.5 (vision encoder)",
    .hf = FAMILY_NAMES({"Exaone4_5_ForConditionalGeneration"}),
    .tensors = {TENSORS({"visual.blocks.{}.attn.qkv", "v.blk.{}.attn_qkv"}), qwen2_vision_tensors},
    .keys = {tower_keys, vision_keys, keys},
    .dropped_prefixes = TEXTS("model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("visual.", "model.visual.")),
    .adjust = adjust,
};
