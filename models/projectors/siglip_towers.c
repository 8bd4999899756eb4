/* Vision encoders that are a SigLIP with a projector of a matrix or two. */
#include "models/projectors/projector.h"

/* SmolVLM and Idefics 3: vision encoder, a SigLIP. conversion/smolvlm.py. */

static const struct key_row smolvlm_keys[] = {
    PROJECTOR_TYPE("idefics3"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-5},
    {"vision.projector.scale_factor", GGUF_U32, OR_DEFAULT, "outer.scale_factor", 2},
    FLAG("use_gelu"),
    {"vision.preproc_image_size", GGUF_U32, REQUIRED, "preprocessor.size.longest_edge|image_size"},
    {0},
};

const struct family smolvlm_projector = {
    .name = "idefics3",
    .summary = "SmolVLM and Idefics 3 (vision encoder)",
    .hf = FAMILY_NAMES({"Idefics3ForConditionalGeneration"}, {"SmolVLMForConditionalGeneration"}),
    .tensors = {TENSORS({"model.connector.modality_projection.proj", "mm.model.fc"}), siglip_tensors},
    .keys = {tower_keys, vision_keys, smolvlm_keys},
    .prefix = "model.vision_model.",
    .dropped_prefixes = TEXTS("model.vision_model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("model.vision_model.", "model.connector.")),
    .stored_types = STORED_TYPES({"v.patch_embd.weight", &f32_dtype}),
};

/* Command A Vision: vision encoder, a SigLIP. conversion/command_r.py, Cohere2VisionModel. */

static const struct relation_row cohere2v_tensors[] = {
    {"multi_modal_projector.linear_1", "mm.1"}, {"multi_modal_projector.linear_2", "mm.2"}, {0}};

static const struct key_row cohere2v_keys[] = {
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
    .tensors = {cohere2v_tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, cohere2v_keys},
    .prefix = "vision_tower.vision_model.",
    .dropped_prefixes = TEXTS("model.", "vision_tower.vision_model.", "vision_tower."),
    .tower = TOWER(.config = {.vision = "vision_config"},
                   .parts = TEXTS("model.vision_tower.", "model.multi_modal_projector.")),
    .stored_types = STORED_TYPES({"v.patch_embd.weight", &f32_dtype}, {"v.position_embd.weight", &f32_dtype}),
};
