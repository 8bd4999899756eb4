/* compressed-tensors/SCHEME/: directories for vLLM and SGLang: a model quantized from its weights alone, as
 * llmcompressor writes it. A scheme is a row of the table.
 *
 * model_free_ptq keeps the files of the source, or of hf/ if the source is not made of safetensors files: each with the
 * same tensors, in which every weight of a linear module becomes codes and scales; an index; config.json with the
 * scheme. All other files are the source's own.
 *
 * oneshot() quantizes the model that transformers loads, and saves it in one file, with recipe.yaml: oneshot/SCHEME/. A
 * config.json without "tie_word_embeddings" or a dtype is replaced by that of transformers 5; this one is the source's
 * even then.
 *
 * Source: llmcompressor, entrypoints/model_free/, transformers/compression/compressed_tensors_utils.py, recipe/;
 * compressed-tensors, quantization/quant_scheme.py, quantization/utils/helpers.py and compressors/. */
#include "products/product.h"
#include "products/quantized_weights.h"

#include "models/engines/ct_model.h"
#include "models/facts.h"
#include "models/shown_tensors.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The parts of a weight. */

static const struct view *shape_of(struct arena *arena, const struct view *matrix)
{
    enum { NUMBER = 8 };
    static const uint64_t two[1] = {2};
    uint8_t *bytes = arena_alloc(arena, 2 * NUMBER);
    for (unsigned i = 0; i < 2 * NUMBER; i++)
        bytes[i] = (uint8_t)(matrix->shape[i / NUMBER] >> 8 * (i % NUMBER));
    return view_literal(arena, &i64_dtype, 1, two, bytes);
}

static struct fused *fuse(struct weights_maker *maker, const struct tensor *tensor)
{
    const struct tensor *members[FUSED_MOST];
    const struct view *matrices[FUSED_MOST];
    size_t n = ct_find_fused(maker->way->model, tensor, members);
    for (size_t i = 0; i < n; i++)
        matrices[i] = weights_matrix(maker, members[i]);
    return fused_new(maker->arena, SCALE_OF_TENSOR, matrices, n);
}

/* oneshot() adds a zero point of 0 to FP8. */
static const struct grouping *grouping_of(const struct weights_maker *maker)
{
    const struct ct_scheme *scheme = maker->way->scheme;
    const struct grouping *grouping = &scheme->grouping;
    if (maker->way->model->loaded == NULL || grouping->code != CODE_E4M3)
        return grouping;
    struct grouping *made = arena_alloc(maker->arena, sizeof *made);
    *made = *grouping;
    made->adds_zero = true;
    return made;
}

static bool put_quantized(struct weights_maker *maker, const struct tensor *tensor)
{
    struct arena *arena = maker->arena;
    const struct ct_scheme *scheme = maker->way->scheme;
    const struct grouping *grouping = grouping_of(maker);
    const struct view *matrix = weights_matrix(maker, tensor);
    if (!grouped_possible(matrix, grouping, maker->error))
        return error_prefix(maker->error, "'%.200s'", tensor->name);
    struct fused *fused = grouping->scale == SCALE_OF_TENSOR ? fuse(maker, tensor) : NULL;
    const struct view *codes = view_group_codes(arena, matrix, grouping, fused, dtype_by_name(scheme->code_dtype));
    weights_put_part(maker, tensor, scheme->form == CT_PLAIN ? ".weight" : ".weight_packed", codes);
    weights_put_part(maker, tensor, ".weight_scale", view_group_scales(arena, matrix, grouping, fused));
    if (scheme->form == CT_PACKED)
        weights_put_part(maker, tensor, ".weight_shape", shape_of(arena, matrix));
    if (grouping->scale == SCALE_ASYMMETRIC)
        weights_put_part(maker, tensor, ".weight_zero_point", view_group_zero_points(arena, matrix, grouping));
    if (fused != NULL)
        weights_put_part(maker, tensor, ".weight_global_scale", view_fused_scale(arena, fused));
    return true;
}

/* Returns the file of a tensor's parts: for fused weights that of the first of them. */
static size_t file_of(const struct weights_way *way, const struct tensor *tensor, bool is_target)
{
    const struct ct_scheme *scheme = way->scheme;
    const struct tensor *fused[FUSED_MOST] = {tensor};
    if (is_target && scheme->grouping.scale == SCALE_OF_TENSOR)
        ct_find_fused(way->model, tensor, fused);
    return way->model->file_of[fused[0] - way->model->tensors->tensors];
}

static struct weights_way way_of(const struct ct_model *model, const struct ct_scheme *scheme)
{
    enum { MOST_PARTS = 4 };
    return (struct weights_way){
        .model = model,
        .scheme = scheme,
        .most_parts = MOST_PARTS,
        .format = model->loaded != NULL ? "pt" : NULL,
        .put = put_quantized,
        .file_of = file_of,
    };
}

/* oneshot() begins a second file at 20 GB, in the order of the class. */
static bool fits_file(const struct artifact *artifact, struct error *error)
{
    static const uint64_t most = (uint64_t)20 * 1000 * 1000 * 1000;
    uint64_t size = 0;
    for (size_t i = 0; i < artifact->n_tensors; i++)
        size += artifact_tensor_bytes(&artifact->tensors[i]);
    return size <= most || error_set(error,
                                     "oneshot() would write several files for %" PRIu64 " bytes, which is not "
                                     "supported; use compressed-tensors/SCHEME/",
                                     size);
}

/* Documents. */

static enum outcome write_index(const struct product_input *input, const void *made, const void *scheme,
                                struct buffer *out, struct error *error)
{
    const struct weights_way way = way_of(made, scheme);
    return weights_write_index(&way, out, error) ? OK : REPORTED;
}

static void put_numbers(struct json_writer *writer, const char *key, const struct ct_scheme *scheme,
                        const struct ct_numbers *numbers, const char *observer)
{
    bool is_weight = numbers == &scheme->weights;
    const struct grouping *grouping = &scheme->grouping;
    bool is_asymmetric = is_weight && grouping->scale == SCALE_ASYMMETRIC;
    if (numbers->type == NULL) {
        json_put_null(writer, key);
        return;
    }
    json_begin_object(writer, key);
    if (is_weight && grouping->rows > 1)
        json_put_template(writer, "'block_structure': [%u, %u]", (uint64_t)grouping->rows, (uint64_t)grouping->columns);
    else
        json_put_null(writer, "block_structure");
    if (numbers->group != 0)
        json_put_number(writer, "group_size", numbers->group);
    else
        json_put_null(writer, "group_size");
    json_put_template(writer,
                      "'actorder': null, 'dynamic': %b, 'num_bits': %u, 'observer': %s, 'observer_kwargs': {},"
                      " 'scale_dtype': %s, 'strategy': %s, 'symmetric': %b, 'type': %s, 'zp_dtype': %s}",
                      !is_weight, (uint64_t)numbers->bits, observer, numbers->scale_dtype, numbers->strategy,
                      !is_asymmetric, numbers->type, is_asymmetric ? "torch.int8" : NULL);
}

/* Appends {"quantization_config": ...}. */
static void describe(const struct ct_model *model, const struct ct_scheme *scheme, struct buffer *text)
{
    struct json_writer writer = {.out = text, .letters = JSON_ASCII};
    bool is_oneshot = model->loaded != NULL;
    json_put_template(
        &writer,
        "{'quantization_config': {'format': %s, 'global_compression_ratio': null, 'kv_cache_scheme': null,"
        " 'quant_method': 'compressed-tensors', 'quantization_status': 'compressed',"
        " 'transform_config': {}, 'version': '0.19.0', 'ignore': [",
        scheme->format);
    for (const char *const *ignored = model->ignored; *ignored != NULL; ignored++)
        json_put_text(&writer, NULL, *ignored);
    json_end(&writer);
    if (is_oneshot)
        json_put_template(&writer, "'sparsity_config': {}");
    json_begin_object(&writer, "config_groups");
    json_begin_object(&writer, is_oneshot ? "group_0" : scheme->name);
    put_numbers(&writer, "weights", scheme, &scheme->weights, is_oneshot ? "memoryless_minmax" : NULL);
    put_numbers(&writer, "input_activations", scheme, &scheme->activations, NULL);
    json_put_template(&writer, "'format': %s, 'output_activations': null, 'targets': ['Linear']}}}}", scheme->format);
}

static enum outcome write_config(const struct product_input *input, const void *made, const void *scheme,
                                 struct buffer *out, struct error *error)
{
    const struct weights_way way = way_of(made, scheme);
    struct buffer description = {0};
    describe(made, scheme, &description);
    bool good = weights_write_config(&way, &description, out, error);
    buffer_free(&description);
    return good ? OK : REPORTED;
}

static enum outcome write_recipe(const struct product_input *input, const void *made, const void *scheme,
                                 struct buffer *out, struct error *error)
{
    return ct_write_recipe(made, scheme, out, error) ? OK : REPORTED;
}

static enum outcome write_generation_config(const struct product_input *input, const void *made, const void *scheme,
                                            struct buffer *out, struct error *error)
{
    return ct_write_generation_config(made, out, error) ? OK : REPORTED;
}

/* The files. */

struct file {
    const struct ct_scheme *scheme;
    size_t number;
};

static enum outcome make_file(const struct product_input *input, const void *made, const void *what,
                              struct arena *arena, struct artifact *ret_artifact, struct error *error)
{
    const struct ct_model *model = made;
    const struct file *file = what;
    const struct weights_way way = way_of(model, file->scheme);
    if (!weights_make(&way, file->number, arena, ret_artifact, error))
        return REPORTED;
    if (model->loaded == NULL || fits_file(ret_artifact, error))
        return OK;
    artifact_free(ret_artifact);
    return REPORTED;
}

static bool keeps_files(const struct checkpoint *checkpoint)
{
    return ct_keeps_files(checkpoint, shown_tensors_of(checkpoint)->unpacked != NULL);
}

static const void *make_model(const struct product_input *input, struct arena *arena, struct error *error)
{
    const struct hf_model *model = hf_model_of(input->checkpoint, error);
    bool keeps = keeps_files(input->checkpoint);
    return model != NULL ? ct_model_new(arena, model, keeps, false, input->request->ignored_modules, error) : NULL;
}

static const void *load_model(const struct product_input *input, struct arena *arena, struct error *error)
{
    const struct hf_model *model = hf_model_of(input->checkpoint, error);
    return model != NULL ? ct_model_load(arena, model, input->request->ignored_modules, error) : NULL;
}

/* The model of oneshot/, whose files the other product lists. */
static const struct product oneshot_product = {.name = "oneshot", .make = load_model};

/* Adds the weights: an index may name shards in folders. */
static void add_weights(const struct checkpoint *checkpoint, const struct ct_scheme *scheme, struct product_list *list)
{
    bool keeps = keeps_files(checkpoint);
    size_t n_files = keeps ? checkpoint->n_sources : 1;
    struct file *files = arena_array(list->arena, n_files, sizeof *files);
    for (size_t i = 0; i < n_files; i++) {
        files[i] = (struct file){scheme, i};
        const char *path = keeps ? source_name(checkpoint->sources[i]) : "model.safetensors";
        product_add(list, (struct product_file){.path = path, .make = make_file, .what = &files[i]});
    }
    product_add(list,
                (struct product_file){.path = "model.safetensors.index.json", .write = write_index, .what = scheme});
    product_add(list, (struct product_file){.path = "config.json", .write = write_config, .what = scheme});
}

static void add_oneshot(struct product_list *list, const char *path, product_writer *write,
                        const struct ct_scheme *scheme)
{
    product_add(list, (struct product_file){.path = path, .write = write, .what = scheme, .of = &oneshot_product});
}

static void list_oneshot(const struct product_input *input, const struct ct_scheme *scheme, struct product_list *list)
{
    const struct file whole = {scheme, 0};
    product_add(list, (struct product_file){
                          .path = "model.safetensors",
                          .make = make_file,
                          .what = arena_copy(list->arena, &whole, sizeof whole),
                          .of = &oneshot_product,
                      });
    add_oneshot(list, "recipe.yaml", write_recipe, scheme);
    if (facts_of(input->checkpoint).keys == NULL)
        add_oneshot(list, "generation_config.json", write_generation_config, scheme);
    hf_add_template(input, list);
    add_oneshot(list, "config.json", write_config, scheme);
}

/* A way to quantize by a scheme; none in oneshot/ itself. */
struct way {
    const struct ct_scheme *scheme;
    bool is_oneshot;
};

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    const struct way *way = variant;
    if (way->scheme == NULL)
        return true;
    if (way->is_oneshot)
        list_oneshot(input, way->scheme, list);
    else
        add_weights(input->checkpoint, way->scheme, list);
    hf_add_beside(input, "", list);
    return true;
}

static void find_ways(struct arena *arena, bool is_oneshot, product_found *found, void *context)
{
    for (const struct ct_scheme *scheme = ct_schemes; scheme->name != NULL; scheme++) {
        const struct way way = {scheme, is_oneshot};
        const char *name = is_oneshot ? arena_printf(arena, "oneshot/%s", scheme->name) : scheme->name;
        found(context, name, arena_copy(arena, &way, sizeof way), !scheme->is_rare);
    }
}

/* Finds the schemes, and those of oneshot/, which is not listed: it has the same weights once more. */
static void find_variants(const struct product_input *input, struct arena *arena, product_found *found, void *context)
{
    static const struct way none = {NULL, true};
    find_ways(arena, false, found, context);
    found(context, "oneshot", &none, false);
    find_ways(arena, true, found, context);
}

const struct product compressed_tensors_product = {
    .name = "engines",
    .summary = "compressed-tensors/SCHEME/: the model quantized for vLLM and SGLang",
    .root = "compressed-tensors",
    .ending = "-",
    .command = "vllm serve",
    .opened = OPENED_AT_ROOT,
    .is_offered = product_is_for_loaders,
    .variants = find_variants,
    .make = make_model,
    .files = list_files,
};
