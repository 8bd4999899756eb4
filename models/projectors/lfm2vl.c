/* LFM2-VL: vision encoder, a SigLIP 2. conversion/lfm2.py, LFM2VLModel. */
#include "models/projectors/projector.h"

enum { PATCH = 16, IMAGE = 256 };

/* A patch is a row of pixels, each with its colours; ggml needs planes. */
static const struct relation_row tensors[] = {
    {"^embeddings.patch_embedding.weight", "v.patch_embd.weight", "o (y x c) -> o c y x"},
    {"multi_modal_projector.layer_norm", "mm.input_norm"},
    {"multi_modal_projector.linear_1", "mm.1"},
    {"multi_modal_projector.linear_2", "mm.2"},
    {"^head.*", NULL},
    {0},
};

/* Sets image_size, a required key, although images have any size. */
static bool adjust(struct model_builder *builder, struct error *error)
{
    return hparams_override(builder->model->hparams, "image_size", IMAGE, error);
}

/* Counts the used layers: vision_feature_layer is the last one, counted from the end. */
static bool compute_used_layers(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double n_layers, last;
    if (!builder_number(builder, VISION_BLOCK_COUNT, 0, &n_layers, error) ||
        !builder_number(builder, "outer.vision_feature_layer", -1, &last, error))
        return false;
    *ret_value = n_layers + last + 1;
    return true;
}

/* Names the preprocessor's `resample`, a number of PIL. */
static bool emit_resize_algorithm(struct model_builder *builder, struct error *error)
{
    static const char *const names[] = {NULL, "lanczos", "bilinear", "bicubic"};
    uint64_t number;
    const struct json *value = hparams_get(builder->model->hparams, "preprocessor.resample");
    if (value == NULL || json_is(value, JSON_NULL))
        return true;
    if (!json_u64(value, &number) || number == 0 || number >= sizeof names / sizeof *names)
        return error_set(error, "preprocessor_config.json: resample is not 1, 2 or 3");
    gguf_set_text(&builder->model->kvs, "clip.vision.image_resize_algo", names[number]);
    return true;
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("lfm2"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_eps"},
    {"vision.projector.scale_factor", GGUF_U32, OR_DEFAULT, "outer.downsample_factor", 2},
    FLAG("use_gelu"),
    {"vision.block_count", GGUF_U32, .compute = compute_used_layers},
    {.emit = emit_resize_algorithm, .since = RESIZE_ALGORITHM},
    {0},
};

const struct family lfm2vl_projector = {
    .name = "lfm2",
    .summary = "LFM2-VL (vision encoder)",
    .hf = FAMILY_NAMES({"Lfm2VlForConditionalGeneration"}),
    .tensors = {tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, keys},
    .prefix = "vision_tower.vision_model.",
    .dropped_prefixes = TEXTS("model.", "vision_tower.vision_model."),
    .tower = TOWER(.config = {.vision = "vision_config"},
                   .parts = TEXTS("model.vision_tower.", "model.multi_modal_projector.", "vision_tower.",
                                  "multi_modal_projector.")),
    .dimensions = {DIMENSIONS({"y", NULL, PATCH}, {"x", NULL, PATCH})},
    .adjust = adjust,
};
