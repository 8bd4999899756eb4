/* bitsandbytes/TYPE/: directories that transformers loads with bitsandbytes: every linear module but the output head in
 * 4 or 8 bits, as from_pretrained(quantization_config=BitsAndBytesConfig(...)) and save_pretrained() write them on a
 * CPU.
 *
 * Weights are in one file, or in shards (models/huggingface/shards.h), whose number the first look into the directory
 * finds. With double quantization, the text of a weight has a mean of all its blocks, whose length only reading them
 * all tells: blanks fill it up, so that the file differs from transformers' in its texts.
 *
 * Source: transformers, integrations/bitsandbytes.py and quantizers/quantizer_bnb_*.py; bitsandbytes, functional.py
 * (QuantState.as_dict()) and nn/modules.py. */
#include "products/product.h"

#include "formats/safetensors/safetensors.h"
#include "models/config/saved_config.h"
#include "models/engines/loaded.h"
#include "models/facts.h"
#include "models/huggingface/shards.h"
#include "quant/pack/bitsandbytes.h"
#include "quant/views/convert.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct type {
    const char *name;        /* of its directory */
    const float *levels;     /* of the codes of 4 bits (quant/pack/bitsandbytes.h); NULL: 8 bits */
    const char *levels_name; /* NULL: 8 bits */
    bool is_double;          /* the largest magnitudes of blocks are quantized, too */
} types[] = {
    {"nf4", bnb_nf4_levels, "nf4", false},
    {"fp4", bnb_fp4_levels, "fp4", false},
    {"int8", NULL, NULL, false},
    {"nf4-double", bnb_nf4_levels, "nf4", true},
    {"fp4-double", bnb_fp4_levels, "fp4", true},
};
enum { N_TYPES = sizeof types / sizeof *types };

/* The parts that tensors are saved as, in the order of state_dict(). */

struct maker {
    const struct loaded_model *model;
    const struct type *type;
    struct arena *arena;
    const struct shards *shards; /* whose parts are wanted; NULL: all are */
    size_t shard;
    size_t n_passed; /* parts, wanted or not */
    struct artifact *artifact;
    float *nested_levels; /* for double quantization */
};

static bool is_wanted(const struct maker *maker, size_t part)
{
    return maker->shards == NULL || maker->shards->shard_of[part] == maker->shard;
}

static void put(struct maker *maker, const char *name, const struct view *view)
{
    if (!is_wanted(maker, maker->n_passed++))
        return;
    struct tensor *tensor = arena_alloc(maker->arena, sizeof *tensor);
    *tensor = tensor_of_view(name, view);
    maker->artifact->tensors[maker->artifact->n_tensors++] = (struct artifact_tensor){tensor, encoding_of(view->dtype)};
}

static void put_text(struct maker *maker, const char *name, const char *text)
{
    const uint64_t length = strlen(text);
    put(maker, name, view_literal(maker->arena, &u8_dtype, 1, &length, text));
}

static void put_levels(struct maker *maker, const char *name)
{
    static const uint64_t n_levels = BNB_LEVELS;
    put(maker, arena_printf(maker->arena, "%s.quant_map", name),
        view_numbers(maker->arena, 1, &n_levels, maker->type->levels));
}

static void put_bias(struct maker *maker, const struct loaded_tensor *bias)
{
    if (bias != NULL)
        put(maker, bias->name, bias->view);
}

/* Puts the largest magnitudes of blocks in 8 bits, and the text that ends with their mean. */
static void put_nested(struct maker *maker, const char *name, const char *text_name, const char *text,
                       const struct view *maxima)
{
    static const uint64_t n_levels = BNB_NESTED_LEVELS;
    struct arena *arena = maker->arena;
    struct bnb_nested *nested = bnb_nested_new(arena, maxima, maker->nested_levels);
    text = arena_printf(arena, "%s, \"nested_blocksize\": %d, \"nested_dtype\": \"float32\", \"nested_offset\": ", text,
                        BNB_NESTED_BLOCK);
    put(maker, arena_printf(arena, "%s.absmax", name), view_bnb_nested_codes(arena, nested));
    put_levels(maker, name);
    put(maker, arena_printf(arena, "%s.nested_absmax", name), view_bnb_nested_maxima(arena, nested));
    put(maker, arena_printf(arena, "%s.nested_quant_map", name),
        view_numbers(arena, 1, &n_levels, maker->nested_levels));
    put(maker, text_name, view_bnb_nested_text(arena, nested, text, json_f64_text));
}

static void put_4bit(struct maker *maker, const char *name, const struct view *matrix, const struct loaded_tensor *bias)
{
    struct arena *arena = maker->arena;
    const struct type *type = maker->type;
    const struct view *maxima = view_bnb_maxima(arena, matrix);
    const char *text_name = arena_printf(arena, "%s.quant_state.bitsandbytes__%s", name, type->levels_name);
    const char *text = arena_printf(
        arena, "{\"quant_type\": \"%s\", \"blocksize\": %d, \"dtype\": \"%s\", \"shape\": [%" PRIu64 ", %" PRIu64 "]",
        type->levels_name, BNB_BLOCK, maker->model->dtype_name, matrix->shape[0], matrix->shape[1]);
    put(maker, name, view_bnb_codes(arena, matrix, type->levels));
    put_bias(maker, bias);
    if (type->is_double) {
        put_nested(maker, name, text_name, text, maxima);
        return;
    }
    put(maker, arena_printf(arena, "%s.absmax", name), maxima);
    put_levels(maker, name);
    put_text(maker, text_name, arena_printf(arena, "%s}", text));
}

static void put_8bit(struct maker *maker, const char *name, const struct view *matrix, const struct loaded_tensor *bias)
{
    static const uint8_t row_by_row = 0; /* the order of the codes */
    struct arena *arena = maker->arena;
    const char *module = arena_strndup(arena, name, loaded_module(name));
    put(maker, name, view_bnb_rows(arena, matrix));
    put_bias(maker, bias);
    put(maker, arena_printf(arena, "%s.SCB", module), view_bnb_row_maxima(arena, matrix));
    put(maker, arena_printf(arena, "%s.weight_format", module), view_literal(arena, &u8_dtype, 0, NULL, &row_by_row));
}

enum { MOST_PARTS = 6 }; /* of a tensor */

/* Reports whether one of the next parts is wanted: of tensors without any, nothing is made. */
static bool has_wanted(const struct maker *maker, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_wanted(maker, maker->n_passed + i))
            return true;
    return false;
}

static bool is_quantized(const struct loaded_tensor *tensor)
{
    return tensor->kind == LOADED_LINEAR || tensor->kind == LOADED_TRANSPOSED;
}

/* Fails if no weight of the model would be quantized: its directories would hold another kind of model than they say.
 */
static bool quantizes_any(const struct loaded_model *model, struct error *error)
{
    for (size_t i = 0; i < model->n_tensors; i++)
        if (is_quantized(&model->tensors[i]))
            return true;
    return error_set(error, "there is no linear module to quantize among %zu tensors", model->n_tensors);
}

/* Returns how many parts put_tensor() puts. */
static size_t count_parts(const struct type *type, const struct loaded_tensor *tensor, const struct loaded_tensor *bias)
{
    size_t n_quantized = type->levels == NULL ? 3 : type->is_double ? MOST_PARTS : 4;
    return is_quantized(tensor) ? n_quantized + (bias != NULL) : 1;
}

static void put_tensor(struct maker *maker, const struct loaded_tensor *tensor, const struct loaded_tensor *bias)
{
    const struct view *view = tensor->view;
    if (!is_quantized(tensor)) {
        put(maker, tensor->name, view);
        return;
    }
    if (tensor->kind == LOADED_TRANSPOSED)
        view = view_transpose(maker->arena, view);
    if (maker->type->levels != NULL)
        put_4bit(maker, tensor->name, view, bias);
    else
        put_8bit(maker, tensor->name, view, bias);
}

/* Returns the bias that follows a quantized weight in its module; NULL: none. What the weight is decoded with comes
 * after it. */
static const struct loaded_tensor *bias_after(const struct loaded_model *model, size_t weight)
{
    const struct loaded_tensor *tensor = &model->tensors[weight], *next = tensor + 1;
    size_t length = loaded_module(tensor->name);
    bool has_one = is_quantized(tensor) && weight + 1 < model->n_tensors &&
                   strncmp(next->name, tensor->name, length) == 0 && strcmp(next->name + length, ".bias") == 0;
    return has_one ? next : NULL;
}

/* Makes the artifact of a shard, or, if `shards` is NULL, of the whole model. */
static void make_artifact(const struct loaded_model *model, const struct type *type, const struct shards *shards,
                          size_t shard, struct arena *arena, struct artifact *ret_artifact)
{
    struct maker maker = {.model = model, .type = type, .arena = arena, .shards = shards, .shard = shard};
    maker.artifact = ret_artifact;
    maker.nested_levels = arena_array(arena, BNB_NESTED_LEVELS, sizeof *maker.nested_levels);
    bnb_nested_levels(maker.nested_levels);
    *ret_artifact = (struct artifact){.container = &safetensors_container};
    artifact_reserve(ret_artifact, MOST_PARTS * model->n_tensors);
    ret_artifact->n_tensors = 0;
    for (size_t i = 0; i < model->n_tensors; i++) {
        const struct loaded_tensor *bias = bias_after(model, i);
        size_t n = count_parts(type, &model->tensors[i], bias);
        if (has_wanted(&maker, n))
            put_tensor(&maker, &model->tensors[i], bias);
        else
            maker.n_passed += n;
        i += bias != NULL;
    }
    gguf_set_text(&ret_artifact->metadata, "format", "pt");
}

/* The shards. */

/* Returns how many parameters transformers counts in a tensor: two in each byte of codes. */
static uint64_t count_parameters(const struct type *type, const struct loaded_tensor *tensor)
{
    uint64_t n = tensor->view->n_elements;
    if (shards_is_buffer(tensor->name))
        return 0;
    return is_quantized(tensor) && type->levels != NULL ? (n + 1) / 2 * 2 : n;
}

static bool plan_shards(const struct loaded_model *model, const struct type *type, uint64_t max_size,
                        struct arena *arena, struct shards *ret_shards, struct error *error)
{
    struct arena *scratch = arena_new();
    struct artifact whole;
    make_artifact(model, type, NULL, 0, scratch, &whole);
    struct shards shards = {.shard_of = arena_array(arena, whole.n_tensors, sizeof *shards.shard_of)};
    uint64_t *sizes = arena_array(scratch, whole.n_tensors, sizeof *sizes);
    for (size_t i = 0; i < whole.n_tensors; i++) {
        const struct tensor *part = whole.tensors[i].tensor;
        sizes[i] = dtype_bytes(part->dtype, tensor_elements(part));
        shards.total_size += sizes[i];
    }
    for (size_t i = 0; i < model->n_tensors; i++)
        shards.total_parameters += count_parameters(type, &model->tensors[i]);
    shards.n_shards = shards_spread(sizes, whole.n_tensors, max_size, shards.shard_of);
    artifact_free(&whole);
    arena_free(scratch);
    *ret_shards = shards;
    return shards_few_enough(shards.n_shards, max_size, error);
}

/* Documents. */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct shards_entry *)a)->name, ((const struct shards_entry *)b)->name);
}

static void write_entries(const struct loaded_model *model, const struct type *type, const struct shards *shards,
                          struct buffer *out)
{
    struct arena *scratch = arena_new();
    struct artifact whole;
    make_artifact(model, type, NULL, 0, scratch, &whole);
    struct shards_entry *entries = arena_array(scratch, whole.n_tensors, sizeof *entries);
    for (size_t i = 0; i < whole.n_tensors; i++) {
        const struct tensor *part = whole.tensors[i].tensor;
        entries[i] = (struct shards_entry){part->name, part->name_length, shards->shard_of[i]};
    }
    qsort(entries, whole.n_tensors, sizeof *entries, by_name);
    shards_write_entries(shards, entries, whole.n_tensors, out);
    artifact_free(&whole);
    arena_free(scratch);
}

/* Returns {"quantization_config": ...}. */
static struct json_document *describe(const struct type *type, struct error *error)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_ASCII};
    bool is_4bit = type->levels != NULL;
    json_put_template(
        &writer,
        "{'quantization_config': {'_load_in_4bit': %b, '_load_in_8bit': %b, 'bnb_4bit_compute_dtype': 'float32',"
        " 'bnb_4bit_quant_storage': 'uint8', 'bnb_4bit_quant_type': %s, 'bnb_4bit_use_double_quant': %b,"
        " 'llm_int8_enable_fp32_cpu_offload': false, 'llm_int8_has_fp16_weight': false,"
        " 'llm_int8_skip_modules': null, 'llm_int8_threshold': 6.0, 'load_in_4bit': %b, 'load_in_8bit': %b,"
        " 'quant_method': 'bitsandbytes'}}",
        is_4bit, !is_4bit, is_4bit ? type->levels_name : "fp4", type->is_double, is_4bit, !is_4bit);
    struct json_document *document = json_parse((const char *)text.bytes, text.length, error);
    buffer_free(&text);
    return document;
}

static void put_document(const struct json_document *document, struct buffer *out)
{
    json_put_sorted(&(struct json_writer){.out = out, .letters = JSON_ASCII}, json_root(document), NULL);
    buffer_append_text(out, "\n");
}

/* The object: a model, and the shards of each type, or why it has none. */

struct planned {
    struct shards shards;
    const char *refusal; /* NULL: none */
};

struct models {
    const struct loaded_model *loaded;
    struct planned planned[N_TYPES];
};

static const void *make_models(const struct product_input *input, struct arena *arena, struct error *error)
{
    struct models *made = arena_alloc(arena, sizeof *made);
    uint64_t limit = input->request->shard_size != 0 ? input->request->shard_size : shards_usual_size;
    const struct hf_model *plain = hf_model_of(input->checkpoint, error);
    struct error refusal;
    *made = (struct models){.loaded = plain != NULL ? loaded_model_new(arena, plain, error) : NULL};
    if (made->loaded == NULL || !quantizes_any(made->loaded, error))
        return NULL;
    for (size_t i = 0; i < N_TYPES; i++)
        if (!plan_shards(made->loaded, &types[i], limit, arena, &made->planned[i].shards, &refusal))
            made->planned[i].refusal = arena_strdup(arena, refusal.message);
    return made;
}

/* The files. */

/* Returns the shards of a type; NULL: it has one file. */
static const struct shards *shards_of(const struct models *models, const struct type *type)
{
    const struct planned *planned = &models->planned[type - types];
    return planned->refusal == NULL && planned->shards.n_shards > 1 ? &planned->shards : NULL;
}

static enum outcome make_weights(const struct product_input *input, const void *made, const void *what,
                                 struct arena *arena, struct artifact *ret_artifact, struct error *error)
{
    const struct models *models = made;
    const struct product_shard *file = what;
    const struct type *type = file->of;
    const char *refusal = models->planned[type - types].refusal;
    if (refusal != NULL) {
        error_set(error, "%s", refusal);
        return REPORTED;
    }
    make_artifact(models->loaded, type, shards_of(models, type), file->number, arena, ret_artifact);
    return OK;
}

static enum outcome write_index(const struct product_input *input, const void *made, const void *type,
                                struct buffer *out, struct error *error)
{
    const struct models *models = made;
    write_entries(models->loaded, type, shards_of(models, type), out);
    return OK;
}

static enum outcome write_config(const struct product_input *input, const void *made, const void *type,
                                 struct buffer *out, struct error *error)
{
    const struct loaded_model *model = ((const struct models *)made)->loaded;
    struct json_document *more = describe(type, error), *config = NULL;
    if (more != NULL)
        config = saved_config(json_root(model->config), model->dtype_name, json_root(more), error);
    if (config != NULL)
        put_document(config, out);
    json_free(more);
    bool is_written = config != NULL;
    json_free(config);
    return is_written ? OK : REPORTED;
}

static enum outcome write_generation_config(const struct product_input *input, const void *made, const void *type,
                                            struct buffer *out, struct error *error)
{
    const struct loaded_model *model = ((const struct models *)made)->loaded;
    return loaded_write_generation_config(model, TRANSFORMERS_4, out, error) ? OK : REPORTED;
}

static bool list_files(const struct product_input *input, const void *made, const void *type, struct product_list *list,
                       struct error *error)
{
    /* Without models the weights are one file, whose plan gives the reason. */
    const struct shards one = {.n_shards = 1}, *shards = made != NULL ? shards_of(made, type) : NULL;
    product_add_shards(list, "", shards != NULL ? shards : &one, type, make_weights);
    if (shards != NULL)
        product_add(list,
                    (struct product_file){.path = "model.safetensors.index.json", .write = write_index, .what = type});
    product_add(list, (struct product_file){.path = "config.json", .write = write_config, .what = type});
    if (facts_of(input->checkpoint).keys == NULL)
        product_add(list, (struct product_file){.path = "generation_config.json", .write = write_generation_config});
    hf_add_template(input, list);
    hf_add_beside(input, "", list);
    return true;
}

static void find_types(const struct product_input *input, struct arena *arena, product_found *found, void *context)
{
    for (size_t i = 0; i < N_TYPES; i++)
        found(context, types[i].name, &types[i], !types[i].is_double);
}

const struct product bitsandbytes_product = {
    .name = "bitsandbytes",
    .summary = "bitsandbytes/TYPE/: the model in 4 or 8 bits for transformers",
    .root = "bitsandbytes",
    .ending = "-bnb-",
    .opened = OPENED_AT_ROOT,
    .is_offered = product_is_for_loaders,
    .variants = find_types,
    .make = make_models,
    .needs_object = product_needs_object,
    .files = list_files,
};
