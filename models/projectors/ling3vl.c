/* Ling 3 VL: Qwen3-VL's vision encoder with a projector of its own. conversion/bailingmoe3.py,
 * BailingMoeV3VLVisionModel. */
#include "models/projectors/projector.h"

static const struct relation_row tensors[] = {
    {"visual.merger.norm", "mm.input_norm"},
    {"linear_proj.0", "mm.0"},
    {"linear_proj.2", "mm.2"},
    {0},
};

static bool adjust(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *width = hparams_get(hparams, "out_hidden_size");
    if (!json_bool(hparams_get(hparams, "disable_merger_proj"), false) || width == NULL || json_is(width, JSON_NULL))
        return error_set(error, "config.json: disable_merger_proj of the vision encoder is not true, or its "
                                "out_hidden_size is missing");
    return adjust_image_of_positions(builder, error);
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("ling3vl"),
    FLAG("use_gelu"),
    {"vision.spatial_merge_size", GGUF_U32, IF_PRESENT, "spatial_merge_size"},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "outer.text_config.rms_norm_eps", 1e-6},
    {0},
};

const struct family ling3vl_projector = {
    .name = "ling3vl",
    .summary = "Ling 3 VL (vision encoder)",
    .hf = FAMILY_NAMES({"BailingMoeV3VLForConditionalGeneration", .since = 11173}),
    .tensors = {tensors, qwen3_vision_tensors},
    .keys = {tower_keys, vision_keys, keys},
    .dropped_prefixes = TEXTS("model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("visual.", "model.visual.", "linear_proj.")),
    .rename = rename_deepstack,
    .add_dimensions = add_deepstack_dimensions,
    .adjust = adjust,
};
