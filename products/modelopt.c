/* modelopt/W4A16_NVFP4/: a model in NVFP4, weights only, as ModelOpt's export_hf_checkpoint() writes it for SGLang,
 * TensorRT-LLM and vLLM after quantizing with W4A16_NVFP4_CFG on a CPU.
 *
 * A weight is codes of E2M1, two in a byte, a scale in F8_E4M3 for 16 columns, and a factor in F32, which modules that
 * engines fuse share. The files are the source's, while ModelOpt saves the model that transformers loads anew.
 *
 * Source: ModelOpt 0.47.0, torch/quantization/qtensor/nvfp4_tensor.py; torch/export/unified_export_hf.py,
 * quant_utils.py and convert_hf_config.py. */
#include "products/product.h"
#include "products/quantized_weights.h"

#include "quant/views/convert.h"
#include "text/json_write.h"

#include <stdlib.h>
#include <string.h>

enum { GROUP = 16 };

static const struct grouping grouping = {1, GROUP, SCALE_BY_FACTOR, CODE_E2M1, 4, 4, false, true};

/* The modules that W4A16_NVFP4_CFG leaves as they are. */
static const char *const kept[] = {
    "re:.*(lm_head|proj_out|router|embed_tokens|block_sparse_moe\\.gate|mlp\\.gate$|mlp\\.shared_expert_gate)",
    NULL,
};

static const struct view *matrix_of(const struct weights_maker *maker, const struct tensor *tensor)
{
    return view_convert(maker->arena, weights_matrix(maker, tensor), &f32_dtype);
}

static bool put_nvfp4(struct weights_maker *maker, const struct tensor *tensor)
{
    struct arena *arena = maker->arena;
    const struct tensor *members[FUSED_MOST];
    const struct view *matrices[FUSED_MOST], *matrix = matrix_of(maker, tensor);
    size_t n = ct_find_fused(maker->way->model, tensor, members);
    for (size_t i = 0; i < n; i++)
        matrices[i] = matrix_of(maker, members[i]);
    struct fused *fused = fused_new(arena, SCALE_BY_FACTOR, matrices, n);
    if (!grouped_possible(matrix, &grouping, maker->error))
        return error_prefix(maker->error, "'%.200s'", tensor->name);
    weights_put_part(maker, tensor, ".weight", view_group_codes(arena, matrix, &grouping, fused, &u8_dtype));
    weights_put_part(maker, tensor, ".weight_scale", view_group_scales(arena, matrix, &grouping, fused));
    weights_put_part(maker, tensor, ".weight_scale_2", view_reshape(arena, view_fused_scale(arena, fused), 0, NULL));
    return true;
}

/* The object. */

/* Fails for a model with experts, for which ModelOpt's rule of common factors is another one. */
static bool has_no_experts(const struct ct_model *model, struct error *error)
{
    for (size_t i = 0; i < model->tensors->n_tensors; i++)
        if (strstr(model->tensors->tensors[i].name, ".experts.") != NULL)
            return error_set(error, "ModelOpt's NVFP4 of experts is not supported; use compressed-tensors/NVFP4A16/");
    return true;
}

static const void *make_model(const struct product_input *input, struct arena *arena, struct error *error)
{
    struct ct_model *model = weights_model_new(input, kept, arena, error);
    if (model == NULL || !has_no_experts(model, error))
        return NULL;
    model->fused_sets = ct_fused_modules;
    const struct weights_way way = {.model = model, .most_parts = 3, .format = "pt", .put = put_nvfp4};
    return arena_copy(arena, &way, sizeof way);
}

/* Documents. */

/* Writes the modules with a matrix that stay as they are. */
static void put_kept(const struct ct_model *model, const char *key, struct json_writer *writer)
{
    uint32_t *by_name = tensors_by_name(model->tensors->tensors, model->tensors->n_tensors);
    json_begin_array(writer, key);
    for (size_t i = 0; i < model->tensors->n_tensors; i++) {
        const struct tensor *tensor = &model->tensors->tensors[by_name[i]];
        size_t module = loaded_module(tensor->name);
        if (!model->is_target[by_name[i]] && module > 0 && tensor->rank >= 2)
            json_put_text_n(writer, NULL, tensor->name, module);
    }
    json_end(writer);
    free(by_name);
}

static const char producer[] = "'producer': {'name': 'modelopt', 'version': '0.47.0'}";

static enum outcome write_config(const struct product_input *input, const void *made, const void *what,
                                 struct buffer *out, struct error *error)
{
    const struct weights_way *way = made;
    struct buffer description = {0};
    struct json_writer writer = {.out = &description, .letters = JSON_ASCII};
    json_put_template(&writer, "{'quantization_config': {'config_groups': {'group_0': {'weights': {'dynamic': false,"
                               " 'num_bits': 4, 'type': 'float', 'group_size': 16}, 'targets': ['Linear']}},"
                               " 'quant_algo': 'W4A16_NVFP4', 'quant_method': 'modelopt'");
    put_kept(way->model, "ignore", &writer);
    json_put_template(&writer, producer);
    json_end(&writer);
    json_end(&writer);
    bool good = weights_write_config(way, &description, out, error);
    buffer_free(&description);
    return good ? OK : REPORTED;
}

static enum outcome write_own_config(const struct product_input *input, const void *made, const void *what,
                                     struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII, .width = 4};
    json_begin_object(&writer, NULL);
    json_put_template(&writer, producer);
    json_put_template(&writer, "'quantization': {'quant_algo': 'W4A16_NVFP4', 'kv_cache_quant_algo': null,"
                               " 'group_size': 16");
    put_kept(((const struct weights_way *)made)->model, "exclude_modules", &writer);
    json_end(&writer);
    json_end(&writer);
    return OK;
}

/* The files. */

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    weights_add_files(input->checkpoint, list);
    product_add(list, (struct product_file){.path = "config.json", .write = write_config});
    product_add(list, (struct product_file){.path = "hf_quant_config.json", .write = write_own_config});
    hf_add_beside(input, "", list);
    return true;
}

static void find_variants(const struct product_input *input, struct arena *arena, product_found *found, void *context)
{
    static const char nvfp4;
    found(context, "W4A16_NVFP4", &nvfp4, true);
}

const struct product modelopt_product = {
    .name = "modelopt",
    .summary = "modelopt/W4A16_NVFP4/: the model in NVFP4 for SGLang and TensorRT-LLM",
    .root = "modelopt",
    .ending = "-modelopt-",
    .command = "sglang serve",
    .opened = OPENED_AT_ROOT,
    .is_offered = product_is_for_loaders,
    .variants = find_variants,
    .make = make_model,
    .files = list_files,
};
