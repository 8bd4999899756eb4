/* SmolVLM and Idefics 3: what sees, a SigLIP. conversion/smolvlm.py. */
#include "models/projectors/projector.h"

static const struct family_name names[] = {
    {"Idefics3ForConditionalGeneration"}, {"SmolVLMForConditionalGeneration"}, {0}};

static const struct relation_row tensors[] = {
    {"model.connector.modality_projection.proj", "mm.model.fc"},
    {0},
};

static const struct key_row keys[] = {
    PROJECTOR_TYPE("idefics3"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-5},
    {"vision.projector.scale_factor", GGUF_U32, OR_DEFAULT, "outer.scale_factor", 2},
    FLAG("use_gelu"),
    {"vision.preproc_image_size", GGUF_U32, REQUIRED, "preprocessor.size.longest_edge|image_size"},
    {0},
};

static const struct stored_type stored_types[] = {{"v.patch_embd.weight", &f32_dtype}, {0}};

static const char *const parts[] = {"model.vision_model.", "model.connector.", NULL};
static const char *const dropped_prefixes[] = {"model.vision_model.", NULL};
static const struct tower tower = {.config = {.vision = "vision_config"}, .parts = parts, .stored_types = stored_types};

const struct family smolvlm_projector = {
    .name = "idefics3",
    .architecture = "clip",
    .summary = "the vision tower of SmolVLM and Idefics 3",
    .hf = names,
    .tensors = {tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, keys},
    .prefix = "model.vision_model.",
    .dropped_prefixes = dropped_prefixes,
    .tower = &tower,
};
