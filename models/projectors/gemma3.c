/* Gemma 3: vision encoder, a SigLIP. conversion/gemma.py, Gemma3VisionModel. */
#include "models/projectors/projector.h"

#include <math.h>

/* Sets the scale factor of smaller models, which pool images differently. */
static bool emit_scale_factor(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    uint64_t image, patch, n_tokens = 256;
    if (!hparams_count(hparams, "image_size", 1, UINT32_MAX, &image, error) ||
        !hparams_count(hparams, "patch_size", 1, UINT32_MAX, &patch, error))
        return false;
    if (hparams_get(hparams, "preprocessor.image_seq_length") != NULL &&
        !hparams_count(hparams, "preprocessor.image_seq_length", 1, UINT32_MAX, &n_tokens, error))
        return false;
    uint64_t factor = image / patch / (uint64_t)sqrt((double)n_tokens);
    if (factor > 0 && factor != 4)
        gguf_set_u32(&builder->model->kvs, builder_key(builder, "vision.projector.scale_factor"), (uint32_t)factor);
    return true;
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("gemma3"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
    FLAG("use_gelu"),
    {.emit = emit_scale_factor},
    {0},
};

const struct family gemma3_projector = {
    .name = "gemma3",
    .summary = "Gemma 3 (vision encoder)",
    .hf = FAMILY_NAMES({"Gemma3ForConditionalGeneration"}),
    .tensors = {TENSORS({"multi_modal_projector.mm_input_projection_weight", "mm.input_projection.weight"},
                        {"multi_modal_projector.mm_soft_emb_norm", "mm.soft_emb_norm", .map = &plus_one},
                        {"^head.*", NULL}),
                siglip_tensors},
    .keys = {tower_keys, vision_keys, keys},
    .prefix = "vision_tower.vision_model.",
    .dropped_prefixes = TEXTS("model.", "vision_tower.vision_model."),
    .tower = TOWER(.config = {.vision = "vision_config"},
                   .parts = TEXTS("multi_modal_projector.", "vision_tower.", "model.multi_modal_projector.",
                                  "model.vision_tower.")),
    .stored_types = STORED_TYPES({"mm.input_projection.weight", &f16_dtype}, {"v.patch_embd.weight", &f32_dtype}),
};
