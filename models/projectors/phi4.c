/* Phi-4-reasoning-vision: vision encoder, a SigLIP without its last layer. conversion/phi.py, Phi4VisionMmprojModel. */
#include "models/projectors/projector.h"

#include <inttypes.h>
#include <math.h>

/* The text model gets the results of the last layer but one. */
static const struct relation_row tensors[] = {
    {"^embeddings.patch_embedding.weight", "v.patch_embd.weight", "o (y x c) -> o c y x"},
    {"^encoder.layers.{}.*", NULL, .when = "extra_layer"},
    {"^post_layernorm.*", NULL},
    {"^head.*", NULL},
    {"mm_projector.0", "mm.0"},
    {"mm_projector.2", "mm.2"},
    {"mm_projector.*", NULL},
    {0},
};

/* Finds the side of the square of patches that the positions form. */
static bool find_side(const struct model_builder *builder, uint64_t *ret_side, struct error *error)
{
    static const char *const stored[] = {
        "model.vision_tower.vision_tower.vision_model.embeddings.position_embedding.weight",
        "vision_tower.vision_model.embeddings.position_embedding.weight"};
    const struct tensor *positions = NULL;
    for (size_t i = 0; i < sizeof stored / sizeof *stored && positions == NULL; i++)
        positions = tensor_set_find_text(builder->model->checkpoint->tensors, stored[i]);
    if (positions == NULL || positions->rank != 2)
        return error_set(error, "the vision encoder's matrix position_embedding.weight is missing");
    uint64_t n = positions->shape[0], side = n < UINT32_MAX ? (uint64_t)sqrt((double)n) : 0;
    *ret_side = side;
    return side * side == n ||
           error_set(error, "the vision encoder has %" PRIu64 " positions, but their number must be a square", n);
}

static bool adjust(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    uint64_t n_layers, patch, side = 0;
    if (!hparams_count(hparams, VISION_BLOCK_COUNT, 2, UINT32_MAX, &n_layers, error) ||
        !hparams_count(hparams, "preprocessor.patch_size", 1, UINT16_MAX, &patch, error) ||
        !find_side(builder, &side, error))
        return false;
    builder->dimensions.n_layers = n_layers - 1;
    dimensions_set(&builder->dimensions, "y", patch);
    dimensions_set(&builder->dimensions, "x", patch);
    return hparams_override(hparams, "n_layers", n_layers - 1, error) &&
           hparams_override(hparams, "patch_size", patch, error) &&
           hparams_override(hparams, "image_size", side * patch, error);
}

static bool compute_pixels(const struct model_builder *builder, const char *n_patches, double *ret_value,
                           struct error *error)
{
    double n, patch;
    if (!builder_number(builder, n_patches, NAN, &n, error) ||
        !builder_number(builder, "patch_size", NAN, &patch, error))
        return false;
    *ret_value = n * patch * patch;
    return !isnan(*ret_value) || error_set(error, "preprocessor_config.json has no min_num_patches or max_num_patches");
}

static bool compute_least_pixels(const struct model_builder *builder, double *ret_value, struct error *error)
{
    return compute_pixels(builder, "preprocessor.min_num_patches|outer.min_num_patches", ret_value, error);
}

static bool compute_most_pixels(const struct model_builder *builder, double *ret_value, struct error *error)
{
    return compute_pixels(builder, "preprocessor.max_num_patches|outer.max_num_patches", ret_value, error);
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("phi4"),
    {"vision.image_min_pixels", GGUF_U32, .compute = compute_least_pixels},
    {"vision.image_max_pixels", GGUF_U32, .compute = compute_most_pixels},
    FLAG("use_gelu"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
    {0},
};

const struct family phi4_projector = {
    .name = "phi4",
    .summary = "Phi-4-reasoning-vision (vision encoder)",
    .hf = FAMILY_NAMES({"Phi4ForCausalLMV"}),
    .tensors = {tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, keys},
    .prefix = "vision_tower.vision_model.",
    .dropped_prefixes = TEXTS("model.vision_tower.", "vision_tower.vision_model.", "model."),
    .tower =
        TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("model.vision_tower.vision_tower.", "vision_tower.",
                                                                    "model.mm_projector.", "mm_projector.")),
    .adjust = adjust,
};
