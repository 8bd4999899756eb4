/* Vision encoders that are a SigLIP with a small projector. */
#include "base/text.h"
#include "models/families/layers.h"
#include "models/projectors/projector.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Vision encoders that are a SigLIP with a projector of a matrix or two. */

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
    .dropped_prefixes = SIGLIP_PREFIXES,
    .tower = TOWER(.config = {.vision = "vision_config"},
                   .parts = TEXTS("model.vision_tower.", "model.multi_modal_projector.")),
    .stored_types = STORED_TYPES({"v.patch_embd.weight", &f32_dtype}, {"v.position_embd.weight", &f32_dtype}),
};

/* Janus-Pro: vision encoder, a SigLIP, without the image generator. conversion/januspro.py. */

/* Numbers the layers of the projector from its first one, which has a name of its own. */
static const char *rename_aligner(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                  const char *name)
{
    static const char first[] = "model.aligner.fc1.", others[] = "model.aligner.hidden_layers.";
    if (direction == FORWARD && text_starts_with(name, first))
        return arena_printf(arena, "model.aligner.0.%s", name + strlen(first));
    if (direction != FORWARD || !text_starts_with(name, others))
        return name;
    char *rest;
    unsigned long number = strtoul(name + strlen(others), &rest, 10);
    return number < UINT32_MAX ? arena_printf(arena, "model.aligner.%lu%s", number + 1, rest) : name;
}

static bool janus_adjust(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    bool is_said = hparams_get(hparams, "intermediate_size") != NULL || hparams_get(hparams, "mlp_ratio") == NULL;
    return is_said || projector_inner_width(builder, 1, error);
}

const struct family janus_projector = {
    .name = "janus_pro",
    .summary = "Janus-Pro (vision encoder)",
    .hf = FAMILY_NAMES({"JanusForConditionalGeneration"}),
    .tensors = {TENSORS({"^encoder.layers.{}.self_attn.projection_layer", "v.blk.{}.attn_out"},
                        {"model.aligner.{}", "mm.{}"}),
                siglip_tensors},
    .keys = {tower_keys, vision_keys,
             KEYS(PROJECTOR_TYPE("janus_pro"),
                  {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
                  {.emit = emit_known_activation})},
    .prefix = "model.vision_model.",
    .dropped_prefixes = TEXTS("model.vision_model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("model.vision_model.", "model.aligner.")),
    .rename = rename_aligner,
    .adjust = janus_adjust,
};

/* Youtu-VL: vision encoder, a SigLIP 2. conversion/youtuvl.py. */

/* Leaves out unknown tensors, as the converter does. */
static const struct relation_row other_tensors[] = {{"*", NULL}, {0}};

static bool youtuvl_adjust(struct model_builder *builder, struct error *error)
{
    return hparams_default(builder->model->hparams, "{'image_size': 560}", error);
}

static bool emit_any_activation(struct model_builder *builder, struct error *error)
{
    static const char *const gelus[] = {"gelu", "gelu_pytorch_tanh", "gelu_fast", "gelu_new", "gelu_accurate"};
    static const struct key_row gelu[] = {FLAG("use_gelu"), {0}};
    const struct json *function = hparams_get(builder->model->hparams, "hidden_act");
    bool is_gelu = function == NULL;
    for (size_t i = 0; i < sizeof gelus / sizeof *gelus; i++)
        is_gelu |= json_string_is(function, gelus[i]);
    return is_gelu ? builder_emit(builder, gelu, error) : emit_activation(builder, error);
}

static const struct key_row youtuvl_keys[] = {
    PROJECTOR_TYPE("youtuvl"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
    {.emit = emit_any_activation},
    {"vision.spatial_merge_size", GGUF_U32, OR_DEFAULT, "spatial_merge_size", 2},
    {"vision.window_size", GGUF_U32, IF_PRESENT, "window_size"},
    {"vision.wa_layer_indexes", GGUF_U32, REQUIRED, "fullatt_block_indexes"},
    {0},
};

const struct family youtuvl_projector = {
    .name = "youtuvl",
    .summary = "Youtu-VL (vision encoder)",
    .hf = FAMILY_NAMES({"YoutuVLForConditionalGeneration"}),
    .tensors = {TENSORS({"^embeddings.position_embedding.*", NULL}, {"merger.ln_q", "mm.input_norm"},
                        {"merger.mlp.{}", "mm.{}"}),
                siglip_tensors, other_tensors},
    .keys = {tower_keys, vision_keys, youtuvl_keys},
    .prefix = "siglip2.vision_model.",
    .dropped_prefixes = TEXTS("siglip2.vision_model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("siglip2.", "merger.")),
    .adjust = youtuvl_adjust,
};

/* PaddleOCR-VL: vision encoder, a SigLIP. conversion/ernie.py, PaddleOCRVisionModel. */

static const struct relation_row paddleocr_tensors[] = {
    {"^embeddings.packing_position_embedding", NULL},
    {"^head.*", NULL},
    {"mlp_AR.pre_norm", "mm.input_norm"},
    {"mlp_AR.linear_{}", "mm.{}"},
    {0},
};

/* Sets image_size to the largest square that the preprocessor accepts. */
static bool paddleocr_adjust(struct model_builder *builder, struct error *error)
{
    double n_pixels;
    if (!builder_number(builder, "preprocessor.max_pixels", -1, &n_pixels, error))
        return false;
    if (!(n_pixels >= 0 && n_pixels <= UINT32_MAX))
        return error_set(error, "preprocessor_config.json has no max_pixels, or no such number of pixels");
    return hparams_override(builder->model->hparams, "image_size", (uint64_t)sqrt(n_pixels), error);
}

static const struct key_row paddleocr_keys[] = {
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
    .tensors = {paddleocr_tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, paddleocr_keys},
    .prefix = "visual.vision_model.",
    .dropped_prefixes = TEXTS("visual.vision_model."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("visual.vision_model.", "mlp_AR.")),
    .adjust = paddleocr_adjust,
};

/* MiniCPM-V 4.6: vision encoder, a SigLIP with a merger between its layers. conversion/minicpm.py,
 * MiniCPMV4_6VisionModel. */

static const struct relation_row minicpmv_tensors[] = {
    {"^vit_merger.layer_norm1", "v.vit_merger.ln1", .when = "!sparse"},
    {"^vit_merger.self_attn.q_proj", "v.vit_merger.attn_q", .when = "!sparse"},
    {"^vit_merger.self_attn.k_proj", "v.vit_merger.attn_k", .when = "!sparse"},
    {"^vit_merger.self_attn.v_proj", "v.vit_merger.attn_v", .when = "!sparse"},
    {"^vit_merger.self_attn.out_proj", "v.vit_merger.attn_out", .when = "!sparse"},
    {"^vit_merger.pre_norm", "v.vit_merger.ds_ln", .when = "!sparse"},
    {"^vit_merger.linear_1", "v.vit_merger.ds_ffn_up", .when = "!sparse"},
    {"^vit_merger.linear_2", "v.vit_merger.ds_ffn_down", .when = "!sparse"},
    {"^vit_merger.*", NULL, .when = "sparse"},
    {"model.merger.mlp.0.pre_norm", "mm.input_norm"},
    {"model.merger.mlp.0.linear_1", "mm.up"},
    {"model.merger.mlp.0.linear_2", "mm.down"},
    {0},
};

/* Sets the size of an image's slices from the preprocessor, which may also drop the merger between the layers. */
static bool minicpmv_adjust(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    const struct json *mode = hparams_get(hparams, "preprocessor.downsample_mode");
    uint64_t size;
    if (json_string_is(mode, "4x"))
        dimensions_set(&builder->dimensions, "sparse", 1);
    else if (mode != NULL && !json_string_is(mode, "16x"))
        return error_set(error, "preprocessor_config.json: downsample_mode is neither 4x nor 16x");
    return !json_u64(hparams_get(hparams, "preprocessor.scale_resolution"), &size) ||
           hparams_override(hparams, "image_size", size, error);
}

static bool compute_scale_factor(const struct model_builder *builder, double *ret_value, struct error *error)
{
    *ret_value = dimensions_get(&builder->dimensions, "sparse") != 0 ? 2 : 4;
    return true;
}

static bool emit_merger_place(struct model_builder *builder, struct error *error)
{
    double layer;
    if (!builder_number(builder, "outer.insert_layer_id|insert_layer_id", 6, &layer, error))
        return false;
    const struct layers layers = {.n = 1, .values = &layer};
    return layers_set_i32(builder, "vision.wa_layer_indexes", &layers, error);
}

static const struct key_row minicpmv_keys[] = {
    PROJECTOR_TYPE("minicpmv4_6"),
    {"vision.projector.scale_factor", GGUF_U32, .compute = compute_scale_factor},
    {.emit = emit_merger_place},
    FLAG("use_gelu"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
    {0},
};

const struct family minicpmv_projector = {
    .name = "minicpmv4_6",
    .summary = "MiniCPM-V 4.6 (vision encoder)",
    .hf = FAMILY_NAMES({"MiniCPMV4_6ForConditionalGeneration"}),
    .tensors = {minicpmv_tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, minicpmv_keys},
    .prefix = "model.vision_tower.",
    .dropped_prefixes = TEXTS("model.vision_tower."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("model.vision_tower.", "model.merger.")),
    .adjust = minicpmv_adjust,
};

/* Phi-4-reasoning-vision: vision encoder, a SigLIP without its last layer. conversion/phi.py, Phi4VisionMmprojModel. */

/* The text model gets the results of the last layer but one. */
static const struct relation_row phi4_tensors[] = {
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

static bool phi4_adjust(struct model_builder *builder, struct error *error)
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

static const struct key_row phi4_keys[] = {
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
    .tensors = {phi4_tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, phi4_keys},
    .prefix = "vision_tower.vision_model.",
    .dropped_prefixes = TEXTS("model.vision_tower.", "vision_tower.vision_model.", "model."),
    .tower =
        TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("model.vision_tower.vision_tower.", "vision_tower.",
                                                                    "model.mm_projector.", "mm_projector.")),
    .adjust = phi4_adjust,
};
