/* fp8/block/: a model in FP8 with a scale for each block of 128 x 128 weights, as DeepSeek publishes its own: what
 * vLLM, SGLang and transformers load as quant_method "fp8", and what trainers convert their checkpoints to with scripts
 * (convert_hf_to_fp8.py of slime and miles, --strategy block --block-size 128 128).
 *
 * A scale is the largest magnitude over 448, in F32, and a code the quotient in F32, rounded to F8_E4M3. Blocks at the
 * right and lower edges are smaller. The script makes NaN of a block that is all zeros; here it stays zeros. It leaves
 * modules as they are by parts of their names. Tensors that are no matrices stay, too; the script fails for them.
 *
 * Source: slime, tools/convert_hf_to_fp8.py; transformers, integrations/finegrained_fp8.py. */
#include "products/product.h"
#include "products/quantized_weights.h"

#include "quant/views/convert.h"
#include "text/json_write.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 128 };

static const struct grouping grouping = {BLOCK, BLOCK, SCALE_SYMMETRIC, CODE_E4M3, 8, 8, false, false};

/* The modules that the script leaves as they are. */
static const char *const kept[] = {"re:.*(norm|embed|router|lm_head|eh_proj|weights_proj)", "re:.*mlp\\.gate(\\.|$)",
                                   NULL};

/* Returns the matrix with columns of zeros, so that its rows are whole blocks. */
static const struct view *padded(struct arena *arena, const struct view *matrix)
{
    static const uint64_t one[1] = {1}, strides[2] = {0, 0};
    static const float zero;
    uint64_t n_missing = (BLOCK - matrix->shape[1] % BLOCK) % BLOCK, shape[2] = {matrix->shape[0], n_missing};
    if (n_missing == 0)
        return matrix;
    const struct view *zeros = view_strided(arena, view_numbers(arena, 1, one, &zero), 2, shape, 0, strides);
    const struct view *parts[2] = {matrix, zeros};
    return view_concatenate(arena, parts, 2, 1);
}

static bool put_blocks(struct weights_maker *maker, const struct tensor *tensor)
{
    struct arena *arena = maker->arena;
    const struct view *matrix = view_convert(arena, weights_matrix(maker, tensor), &f32_dtype);
    const struct view *whole = padded(arena, matrix);
    const struct view *codes = view_group_codes(arena, whole, &grouping, NULL, dtype_by_name("F8_E4M3"));
    if (whole != matrix)
        codes = view_slice(arena, codes, 1, 0, matrix->shape[1], 1);
    weights_put_part(maker, tensor, ".weight", codes);
    weights_put_part(maker, tensor, ".weight_scale_inv", view_group_scales(arena, whole, &grouping, NULL));
    return true;
}

/* The object. */

static const void *make_model(const struct product_input *input, struct arena *arena, struct error *error)
{
    const struct weights_way way = {
        .model = weights_model_new(input, kept, arena, error), .most_parts = 2, .format = "pt", .put = put_blocks};
    if (way.model == NULL || way.model->turned == NULL)
        return way.model != NULL ? arena_copy(arena, &way, sizeof way) : NULL;
    error_set(error, "'%.200s': its experts have inputs before outputs, for which there is no form in FP8 blocks",
              way.model->turned->name);
    return NULL;
}

/* Documents. */

/* Writes the names of tensors that stay as they are, without ".weight", each once. */
static void put_kept(const struct ct_model *model, struct json_writer *writer)
{
    uint32_t *by_name = tensors_by_name(model->tensors->tensors, model->tensors->n_tensors);
    json_begin_array(writer, "modules_to_not_convert");
    for (size_t i = 0; i < model->tensors->n_tensors; i++) {
        const struct tensor *tensor = &model->tensors->tensors[by_name[i]];
        size_t module = loaded_module(tensor->name);
        if (!model->is_target[by_name[i]])
            json_put_text_n(writer, NULL, tensor->name, module > 0 ? module : tensor->name_length);
    }
    json_end(writer);
    free(by_name);
}

/* Reports whether the model has layers of sparse attention, whose kernels take scales for powers of two. */
static bool has_indexers(const struct ct_model *model)
{
    for (size_t i = 0; i < model->tensors->n_tensors; i++)
        if (strstr(model->tensors->tensors[i].name, "indexer") != NULL)
            return true;
    return false;
}

static enum outcome write_config(const struct product_input *input, const void *made, const void *what,
                                 struct buffer *out, struct error *error)
{
    const struct weights_way *way = made;
    struct buffer description = {0};
    struct json_writer writer = {.out = &description, .letters = JSON_ASCII};
    json_put_template(&writer, "{'quantization_config': {'activation_scheme': 'dynamic', 'fmt': 'e4m3',"
                               " 'quant_method': 'fp8', 'weight_block_size': [128, 128]");
    put_kept(way->model, &writer);
    if (has_indexers(way->model))
        json_put_text(&writer, "scale_fmt", "ue8m0");
    json_end(&writer);
    json_end(&writer);
    bool good = weights_write_config(way, &description, out, error);
    buffer_free(&description);
    return good ? OK : REPORTED;
}

/* The files. */

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    weights_add_files(input->checkpoint, list);
    product_add(list, (struct product_file){.path = "config.json", .write = write_config});
    hf_add_beside(input, "", list);
    return true;
}

static void find_variants(const struct product_input *input, struct arena *arena, product_found *found, void *context)
{
    static const char block;
    found(context, "block", &block, true);
}

const struct product fp8_blocks_product = {
    .name = "fp8",
    .summary = "fp8/block/: the model in FP8 with block scales, as DeepSeek's",
    .root = "fp8",
    .ending = "-FP8-",
    .command = "vllm serve",
    .opened = OPENED_AT_ROOT,
    .is_offered = product_is_for_loaders,
    .variants = find_variants,
    .make = make_model,
    .files = list_files,
};
