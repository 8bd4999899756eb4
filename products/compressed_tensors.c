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
#include "products/hf.h"

#include "formats/safetensors/write.h"
#include "models/engines/ct_model.h"
#include "models/facts.h"
#include "models/shown_tensors.h"
#include "quant/views/convert.h"
#include "text/json_write.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The artifact of a file. */

struct maker {
    const struct ct_model *model;
    const struct ct_scheme *scheme;
    struct artifact *artifact;
    size_t capacity;
    struct arena *arena;
    struct error *error;
};

static void put(struct maker *maker, const struct tensor *tensor, const struct dtype *dtype)
{
    struct artifact *artifact = maker->artifact;
    assert(artifact->n_tensors < maker->capacity);
    artifact->tensors[artifact->n_tensors++] = (struct artifact_tensor){tensor, encoding_of(dtype)};
}

static void put_part(struct maker *maker, const struct tensor *of, size_t module, const char *suffix,
                     const struct view *view)
{
    struct arena *arena = maker->arena;
    struct tensor *part = arena_alloc(arena, sizeof *part);
    char *name = arena_alloc(arena, module + strlen(suffix) + 1);
    memcpy(name, of->name, module);
    strcpy(name + module, suffix);
    *part = (struct tensor){.name = name,
                            .name_length = (uint32_t)(module + strlen(suffix)),
                            .rank = (uint8_t)view->rank,
                            .dtype = view->dtype,
                            .shape = view->shape,
                            .view = view};
    put(maker, part, view->dtype);
}

static const struct dtype *written_dtype(const struct ct_model *model, const struct tensor *tensor)
{
    if (model->loaded != NULL)
        return tensor->dtype;
    return model->keeps_files ? tensor->dtype : hf_written(model->model, tensor);
}

static const struct view *matrix_of(struct maker *maker, const struct tensor *tensor)
{
    struct arena *arena = maker->arena;
    return view_convert(arena, tensor_view(tensor, arena), written_dtype(maker->model, tensor));
}

static const struct view *shape_of(struct arena *arena, const struct view *matrix)
{
    enum { NUMBER = 8 };
    static const uint64_t two[1] = {2};
    uint8_t *bytes = arena_alloc(arena, 2 * NUMBER);
    for (unsigned i = 0; i < 2 * NUMBER; i++)
        bytes[i] = (uint8_t)(matrix->shape[i / NUMBER] >> 8 * (i % NUMBER));
    return view_literal(arena, &i64_dtype, 1, two, bytes);
}

static struct fused *fuse(struct maker *maker, const struct tensor *tensor)
{
    const struct tensor *members[FUSED_MOST];
    const struct view *matrices[FUSED_MOST];
    size_t n = ct_find_fused(maker->model, tensor, members);
    for (size_t i = 0; i < n; i++)
        matrices[i] = matrix_of(maker, members[i]);
    return fused_new(maker->arena, matrices, n);
}

/* oneshot() adds a zero point of 0 to FP8. */
static const struct grouping *grouping_of(const struct maker *maker)
{
    const struct grouping *grouping = &maker->scheme->grouping;
    if (maker->model->loaded == NULL || grouping->code != CODE_E4M3)
        return grouping;
    struct grouping *made = arena_alloc(maker->arena, sizeof *made);
    *made = *grouping;
    made->adds_zero = true;
    return made;
}

static bool put_quantized(struct maker *maker, const struct tensor *tensor)
{
    struct arena *arena = maker->arena;
    const struct ct_scheme *scheme = maker->scheme;
    const struct grouping *grouping = grouping_of(maker);
    size_t module = loaded_module(tensor->name);
    if (tensor->refusal != NULL)
        return error_set(maker->error, "'%.200s': %s", tensor->name, tensor->refusal);
    const struct view *matrix = matrix_of(maker, tensor);
    if (!grouped_possible(matrix, grouping, maker->error))
        return error_prefix(maker->error, "'%.200s'", tensor->name);
    struct fused *fused = grouping->scale == SCALE_OF_TENSOR ? fuse(maker, tensor) : NULL;
    const struct view *codes = view_group_codes(arena, matrix, grouping, fused, dtype_by_name(scheme->code_dtype));
    put_part(maker, tensor, module, scheme->form == CT_PLAIN ? ".weight" : ".weight_packed", codes);
    put_part(maker, tensor, module, ".weight_scale", view_group_scales(arena, matrix, grouping, fused));
    if (scheme->form == CT_PACKED)
        put_part(maker, tensor, module, ".weight_shape", shape_of(arena, matrix));
    if (grouping->scale == SCALE_ASYMMETRIC)
        put_part(maker, tensor, module, ".weight_zero_point", view_group_zero_points(arena, matrix, grouping));
    if (fused != NULL)
        put_part(maker, tensor, module, ".weight_global_scale", view_fused_scale(arena, fused));
    return true;
}

/* Returns the file of a tensor's parts: for fused weights that of the first of them. */
static size_t file_of(const struct maker *maker, const struct tensor *tensor, bool is_target)
{
    const struct tensor *fused[FUSED_MOST] = {tensor};
    if (is_target && maker->scheme->grouping.scale == SCALE_OF_TENSOR)
        ct_find_fused(maker->model, tensor, fused);
    return maker->model->file_of[fused[0] - maker->model->tensors->tensors];
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

/* Makes the artifact of a file. Fails, with the reason, if the model cannot be quantized by the scheme. */
static bool make_artifact(const struct ct_model *model, const struct ct_scheme *scheme, size_t file,
                          struct arena *arena, struct artifact *ret_artifact, struct error *error)
{
    enum { MOST_PARTS = 4 };
    struct artifact artifact = {.container = &safetensors_container};
    struct maker maker = {model, scheme, &artifact, MOST_PARTS * model->tensors->n_tensors, arena, error};
    bool good = true;
    artifact_reserve(&artifact, maker.capacity);
    artifact.n_tensors = 0;
    for (size_t i = 0; i < model->tensors->n_tensors && good; i++) {
        const struct tensor *tensor = &model->tensors->tensors[i];
        if (file_of(&maker, tensor, model->is_target[i]) != file)
            continue;
        else if (model->is_target[i])
            good = put_quantized(&maker, tensor);
        else
            put(&maker, tensor, written_dtype(model, tensor));
    }
    if (model->loaded != NULL && good)
        good = fits_file(&artifact, error);
    if (model->loaded != NULL)
        gguf_set_text(&artifact.metadata, "format", "pt");
    if (good)
        *ret_artifact = artifact;
    else
        artifact_free(&artifact);
    return good;
}

/* Documents. */

struct index {
    struct tensor *tensors; /* names and sizes alone; the texts live in the arena */
    uint32_t *file_of;
    size_t n;
    uint64_t total_size;
};

static void add_to_index(struct index *index, const struct artifact *artifact, size_t file)
{
    for (size_t i = 0; i < artifact->n_tensors; i++) {
        const struct artifact_tensor *written = &artifact->tensors[i];
        index->tensors[index->n] = *written->tensor;
        index->file_of[index->n++] = (uint32_t)file;
        index->total_size += artifact_tensor_bytes(written);
    }
}

static void put_index(const struct ct_model *model, const struct index *index, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    uint32_t *by_name = tensors_by_name(index->tensors, index->n);
    json_put_template(&writer, "{'metadata': {'total_size': %u}, 'weight_map': {", index->total_size);
    for (size_t i = 0; i < index->n; i++) {
        const struct tensor *tensor = &index->tensors[by_name[i]];
        json_put_key(&writer, tensor->name, tensor->name_length);
        json_put_text(&writer, NULL, model->names[index->file_of[by_name[i]]]);
    }
    json_end(&writer);
    json_end(&writer);
    free(by_name);
}

static enum outcome write_index(const struct product_input *input, const void *made, const void *scheme,
                                struct buffer *out, struct error *error)
{
    const struct ct_model *model = made;
    struct artifact *artifacts = memory_alloc((model->n_files + 1) * sizeof *artifacts);
    struct arena *arena = arena_new();
    struct index index = {0};
    size_t n_artifacts = 0, n_tensors = 0;
    while (n_artifacts < model->n_files &&
           make_artifact(model, scheme, n_artifacts, arena, &artifacts[n_artifacts], error))
        n_tensors += artifacts[n_artifacts++].n_tensors;
    bool good = n_artifacts == model->n_files;
    index.tensors = memory_alloc((n_tensors + 1) * sizeof *index.tensors);
    index.file_of = memory_alloc((n_tensors + 1) * sizeof *index.file_of);
    for (size_t i = 0; i < n_artifacts && good; i++)
        add_to_index(&index, &artifacts[i], i);
    if (good)
        put_index(model, &index, out);
    free(index.tensors);
    free(index.file_of);
    for (size_t i = 0; i < n_artifacts; i++)
        artifact_free(&artifacts[i]);
    free(artifacts);
    arena_free(arena);
    return good ? OK : REPORTED;
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

/* Returns {"quantization_config": ...}. */
static struct json_document *describe(const struct ct_model *model, const struct ct_scheme *scheme, struct error *error)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_ASCII};
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
    struct json_document *document = json_parse((const char *)text.bytes, text.length, error);
    buffer_free(&text);
    return document;
}

static enum outcome write_config(const struct product_input *input, const void *made, const void *scheme,
                                 struct buffer *out, struct error *error)
{
    const struct ct_model *model = made;
    struct json_document *config, *more = describe(model, scheme, error);
    bool good = more != NULL && ct_read_config(model->model, &config, error);
    if (good && config == NULL)
        good = error_set(error, "there is no config.json to add the scheme to");
    if (good)
        json_put_sorted(&(struct json_writer){.out = out, .letters = JSON_ASCII}, json_root(config), json_root(more));
    json_free(good ? config : NULL);
    json_free(more);
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
    const struct file *file = what;
    return make_artifact(made, file->scheme, file->number, arena, ret_artifact, error) ? OK : REPORTED;
}

static bool keeps_files(const struct checkpoint *checkpoint)
{
    return ct_keeps_files(checkpoint, shown_tensors_of(checkpoint)->unpacked != NULL);
}

static const void *make_model(const struct product_input *input, struct arena *arena, struct error *error)
{
    const struct hf_model *model = hf_model_of(input->checkpoint, error);
    bool keeps = keeps_files(input->checkpoint);
    return model != NULL ? ct_model_new(arena, model, keeps, input->request->ignored_modules, error) : NULL;
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
