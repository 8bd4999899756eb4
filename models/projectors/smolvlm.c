/* SmolVLM and Idefics 3: vision encoder, a SigLIP. conversion/smolvlm.py. */
#include "models/projectors/projector.h"

static const struct key_row keys[] = {
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
    .keys = {tower_keys, vision_keys, keys},
    .prefix = "model.vision_model.",
    .dropped_prefixes = TEXTS("model.vision_model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("model.vision_model.", "model.connector.")),
    .stored_types = STORED_TYPES({"v.patch_embd.weight", &f32_dtype}),
};
