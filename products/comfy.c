/* comfy/model-FORMAT.safetensors: a diffusion model with quantized linear layers, for ComfyUI's
 * models/diffusion_models, as comfy-quants makes them from weights alone.
 *
 * The mark X.comfy_quant says how a layer is stored. fp8_e4m3fn: codes, a scale for the weight, and one of 1 for
 * inputs. mxfp8, nvfp4: codes, the scales of 32 and 16 columns in tiles, and for nvfp4 a factor. int8: codes, and a
 * scale for each row, in the form that ComfyUI itself saves, because that of comfy-quants is for a loader of its own.
 *
 * Layers are the matrices named X.weight, without those that ComfyUI-GGUF never quantizes: for Qwen-Image the layers
 * that comfy-quants chooses. A matrix that would have to be padded stays as it is.
 *
 * Source: comfy-quants, backends/inference_model_export.py, mxfp8_model_export.py and nvfp4_model_export.py;
 * comfy/ops.py of ComfyUI; comfy_kitchen, tensor/int8.py. */
#include "products/product.h"

#include "base/text.h"
#include "formats/safetensors/safetensors.h"
#include "models/diffusion/state_dict.h"
#include "models/facts.h"
#include "quant/pack/grouped.h"
#include "quant/pack/tiled_scales.h"
#include "quant/views/convert.h"

#include <assert.h>
#include <string.h>

enum { MOST_PARTS = 4 };

static const char own[] = ".weight";

struct maker;

struct comfy_format {
    const char *path, *mark, *code_dtype;
    struct grouping grouping;
    void (*put_scales)(struct maker *maker, const struct view *matrix, struct fused *fused);
    uint64_t multiple; /* which the rows and columns of a layer must be a multiple of */
};

/* The making of a file. */
struct maker {
    const struct comfy_format *format;
    struct artifact *artifact;
    struct arena *arena;
    const struct tensor_set *tensors; /* of the source */
    const struct tensor *layer;       /* whose parts are put */
    const char *taken;                /* the name of a part that the source has, too; NULL: none */
};

static void put(struct maker *maker, const struct tensor *tensor)
{
    maker->artifact->tensors[maker->artifact->n_tensors++] =
        (struct artifact_tensor){tensor, encoding_of(tensor->dtype)};
}

/* Puts a tensor with this ending in place of the layer's own. */
static void put_part(struct maker *maker, const char *ending, const struct view *view)
{
    struct tensor *part = arena_alloc(maker->arena, sizeof *part);
    int length = (int)(maker->layer->name_length - strlen(own));
    *part = tensor_of_view(arena_printf(maker->arena, "%.*s%s", length, maker->layer->name, ending), view);
    if (strcmp(ending, own) != 0 && tensor_set_find_text(maker->tensors, part->name) != NULL)
        maker->taken = part->name;
    put(maker, part);
}

static const struct view *as_scalar(struct arena *arena, const struct view *view)
{
    return view_reshape(arena, view, 0, NULL);
}

/* Inputs are not scaled: their scale is 1. */
static void put_scale_of_weight(struct maker *maker, const struct view *matrix, struct fused *fused)
{
    static const float one = 1;
    put_part(maker, ".weight_scale", as_scalar(maker->arena, view_fused_scale(maker->arena, fused)));
    put_part(maker, ".input_scale", view_numbers(maker->arena, 0, NULL, &one));
}

static void put_tiles(struct maker *maker, const struct view *matrix, struct fused *fused)
{
    const struct view *scales = view_group_scales(maker->arena, matrix, &maker->format->grouping, fused);
    put_part(maker, ".weight_scale", view_tiled_scales(maker->arena, scales));
    if (fused != NULL)
        put_part(maker, ".weight_scale_2", as_scalar(maker->arena, view_fused_scale(maker->arena, fused)));
}

static void put_scales_of_rows(struct maker *maker, const struct view *matrix, struct fused *fused)
{
    put_part(maker, ".weight_scale", view_group_scales(maker->arena, matrix, &maker->format->grouping, fused));
}

static const struct comfy_format comfy_formats[] = {
    {"model-fp8_e4m3fn.safetensors",
     "{\"format\":\"float8_e4m3fn\",\"full_precision_matrix_mult\":true}",
     "F8_E4M3",
     {1, 0, SCALE_ALIKE, CODE_E4M3, 8, 8, false, false, false},
     put_scale_of_weight,
     1},
    {"model-mxfp8.safetensors",
     "{\"format\": \"mxfp8\"}",
     "F8_E4M3",
     {1, 32, SCALE_AT_MOST, CODE_E4M3, 8, 8, false, false, false},
     put_tiles,
     32},
    {"model-nvfp4.safetensors",
     "{\"format\": \"nvfp4\"}",
     "U8",
     {1, 16, SCALE_BY_ANY_FACTOR, CODE_E2M1_SIGNED, 4, 4, false, false, true},
     put_tiles,
     16},
    {"model-int8.safetensors",
     "{\"format\": \"int8_tensorwise\"}",
     "I8",
     {1, 0, SCALE_OF_127, CODE_INTEGER, 8, 8, false, false, false},
     put_scales_of_rows,
     1},
};

/* Reports whether a tensor is the weight of a layer that is quantized. */
static bool is_quantized(const struct comfy_format *format, const struct diffusion_architecture *architecture,
                         const struct tensor *tensor)
{
    bool has_numbers = tensor->dtype->kind == DTYPE_FLOAT && tensor->dtype->block_elements == 1;
    return has_numbers && tensor->rank == 2 && tensor_elements(tensor) > 0 && text_ends_with(tensor->name, own) &&
           tensor->shape[0] % format->multiple == 0 && tensor->shape[1] % format->multiple == 0 &&
           !diffusion_name_matches(architecture->kept, tensor->name) &&
           !diffusion_name_matches(architecture->precise, tensor->name);
}

static void put_layer(struct maker *maker, const struct tensor *tensor)
{
    const struct comfy_format *format = maker->format;
    struct arena *arena = maker->arena;
    const struct view *matrix = view_convert(arena, tensor_view(tensor, arena), &f32_dtype);
    const uint64_t length[1] = {strlen(format->mark)};
    struct fused *fused =
        scale_needs_fused(format->grouping.scale) ? fused_new(arena, format->grouping.scale, &matrix, 1) : NULL;
    maker->layer = tensor;
    put_part(maker, own, view_group_codes(arena, matrix, &format->grouping, fused, dtype_by_name(format->code_dtype)));
    format->put_scales(maker, matrix, fused);
    put_part(maker, ".comfy_quant", view_literal(arena, &u8_dtype, 1, length, format->mark));
}

static void put_whole(struct maker *maker, const struct tensor *tensor)
{
    struct tensor *whole = arena_alloc(maker->arena, sizeof *whole);
    *whole = tensor_of_view(tensor->name, tensor_view(tensor, maker->arena));
    put(maker, whole);
}

static enum outcome make(const struct product_input *input, const void *made, const void *what, struct arena *arena,
                         struct artifact *ret_artifact, struct error *error)
{
    const struct state_dict *dict = state_dict_of(input->checkpoint);
    struct artifact artifact = {.container = &safetensors_container};
    struct maker maker = {.format = what, .artifact = &artifact, .arena = arena};
    if (dict->refusal != NULL) {
        error_set(error, "%s", dict->refusal);
        return REPORTED;
    }
    size_t n = dict->tensors->n_tensors;
    maker.tensors = dict->tensors;
    artifact_reserve(&artifact, MOST_PARTS * n);
    artifact.n_tensors = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tensor *tensor = &dict->tensors->tensors[i];
        if (is_quantized(maker.format, dict->architecture, tensor))
            put_layer(&maker, tensor);
        else
            put_whole(&maker, tensor);
    }
    assert(artifact.n_tensors <= MOST_PARTS * n);
    if (maker.taken != NULL) {
        artifact_free(&artifact);
        error_set(error, "a part of a quantized layer would be named '%.200s', which the source has already",
                  maker.taken);
        return REPORTED;
    }
    *ret_artifact = artifact;
    return OK;
}

static bool is_offered(const struct product_input *input, struct product_list *hints)
{
    return facts_of(input->checkpoint).has_class_names && state_dict_of(input->checkpoint) != NULL;
}

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    for (size_t i = 0; i < sizeof comfy_formats / sizeof *comfy_formats; i++)
        product_add(list,
                    (struct product_file){.path = comfy_formats[i].path, .make = make, .what = &comfy_formats[i]});
    return true;
}

const struct product comfy_product = {
    .name = "comfy",
    .summary = "comfy/: a diffusion model in FP8, MXFP8, NVFP4 and INT8 for ComfyUI",
    .root = "comfy",
    .is_offered = is_offered,
    .files = list_files,
};
