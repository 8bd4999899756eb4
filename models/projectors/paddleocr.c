/* PaddleOCR-VL: vision encoder, a SigLIP. conversion/ernie.py, PaddleOCRVisionModel. */
#include "models/projectors/projector.h"

#include <math.h>

static const struct relation_row tensors[] = {
    {"^embeddings.packing_position_embedding", NULL},
    {"^head.*", NULL},
    {"mlp_AR.pre_norm", "mm.input_norm"},
    {"mlp_AR.linear_{}", "mm.{}"},
    {0},
};

/* Sets image_size to the largest square that the preprocessor accepts. */
static bool adjust(struct model_builder *builder, struct error *error)
{
    double n_pixels;
    if (!builder_number(builder, "preprocessor.max_pixels", -1, &n_pixels, error))
        return false;
    if (!(n_pixels >= 0 && n_pixels <= UINT32_MAX))
        return error_set(error, "preprocessor_config.json has no max_pixels, or no such number of pixels");
    return hparams_override(builder->model->hparams, "image_size", (uint64_t)sqrt(n_pixels), error);
}

static const struct key_row keys[] = {
    PROJECTOR_TYPE("paddleocr"),
    {"vision.image_max_pixels", GGUF_U32, REQUIRED, "preprocessor.max_pixels"},
    {"vision.image_min_pixels", GGUF_U32, REQUIRED, "preprocessor.min_pixels"},
    FLAG("use_gelu"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "rms_norm_eps", 1e-6},
    {0},
};

const struct family paddleocr_projector = {
    .name = "paddleocr",
    .summary = "PaddleOCR-VL (vision encoder)",
    .hf = FAMILY_NAMES({"PaddleOCRVisionModel"}),
    .tensors = {tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, keys},
    .prefix = "visual.vision_model.",
    .dropped_prefixes = TEXTS("visual.vision_model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("visual.vision_model.", "mlp_AR.")),
    .adjust = adjust,
};
