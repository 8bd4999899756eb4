/* Command A Vision: vision encoder, a SigLIP. conversion/command_r.py, Cohere2VisionModel. */
#include "models/projectors/projector.h"

static const struct relation_row tensors[] = {
    {"multi_modal_projector.linear_1", "mm.1"}, {"multi_modal_projector.linear_2", "mm.2"}, {0}};

static const struct key_row keys[] = {
    PROJECTOR_TYPE("cohere2v"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_eps"},
    {"vision.projector.scale_factor", GGUF_U32, REQUIRED, "outer.downsample_factor"},
    {"vision.preproc_max_tiles", GGUF_U32, REQUIRED, "preprocessor.max_patches"},
    FLAG("use_gelu"),
    {0},
};

const struct family cohere2v_projector = {
    .name = "cohere2v",
    .summary = "Command A Vision (vision encoder)",
    .since = 11549,
    .hf = FAMILY_NAMES({"Cohere2VisionForConditionalGeneration"}),
    .tensors = {tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, keys},
    .prefix = "vision_tower.vision_model.",
    .dropped_prefixes = TEXTS("model.", "vision_tower.vision_model.", "vision_tower."),
    .tower = TOWER(.config = {.vision = "vision_config"},
                   .parts = TEXTS("model.vision_tower.", "model.multi_modal_projector.")),
    .stored_types = STORED_TYPES({"v.patch_embd.weight", &f32_dtype}, {"v.position_embd.weight", &f32_dtype}),
};
