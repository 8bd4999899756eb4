#include "models/engines/bitsandbytes.h"

#include "base/text.h"
#include "formats/documents.h"
#include "formats/json_write.h"
#include "formats/safetensors/write.h"
#include "models/config/hparams.h"
#include "models/config/saved_config.h"
#include "models/derive/plain_config.h"
#include "quant/bitsandbytes.h"
#include "quant/convert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char weight[] = ".weight";

const struct bnb_type bnb_types[] = {
    {"nf4", bnb_nf4_levels},
    {"fp4", bnb_fp4_levels},
    {"int8", NULL},
    {0},
};

/* A type that weights may be loaded as: the name in config.json, and wfs's. */
static const struct loaded_type {
    const char *name;
    const struct dtype *dtype;
} loaded_types[] = {{"bfloat16", &bf16_dtype}, {"float16", &f16_dtype}, {"float32", &f32_dtype}};

/* What a class does with names and weights of older checkpoints. */
static const struct class_names {
    const char *model_type;
    const char *prefix;     /* of all names but the head's, which checkpoints may lack */
    const char *buffers[2]; /* ends of the names of buffers, which are not parameters */
    const char *transposed; /* modules whose weights have the inputs first: ends of their names, after '|' */
    const char *routers;    /* a module that is a parameter of its own, not linear: the end of its name */
} classes[] = {
    {"gpt2", "transformer.", {".attn.bias", ".attn.masked_bias"}, "|c_attn|c_proj|c_fc|", NULL},
    {"bloom", "transformer.", {NULL}, NULL, NULL},
    {"deepseek_v2", NULL, {NULL}, NULL, ".mlp.gate"},
    {"deepseek_v3", NULL, {NULL}, NULL, ".mlp.gate"},
    {"glm4_moe", NULL, {NULL}, NULL, ".mlp.gate"},
    {"dots1", NULL, {NULL}, NULL, ".mlp.gate"},
    {"gpt_oss", NULL, {NULL}, NULL, ".mlp.router"},
    {NULL, NULL, {NULL}, NULL, NULL},
};

struct bnb_model {
    const struct hf_model *model;
    const struct class_names *class;
    const struct loaded_type *loaded;
    struct json_document *config; /* the source's, without its packing */
    bool ties_head;
};

/* The configuration. */

/* Appends config.json without the description of a packing. */
static bool append_config(const struct hf_model *model, struct buffer *text, struct error *error)
{
    struct document *document = NULL;
    if (model->config != NULL) {
        buffer_append(text, model->config, model->config_length);
        return true;
    }
    if (!document_open(model->checkpoint, "config.json", &document, error))
        return false;
    if (document == NULL)
        return error_set(error, "there is no config.json");
    plain_config(document_root(document), text);
    document_close(document);
    return true;
}

/* Reads config.json, and whether the class has the embedding as its head, too. */
static bool read_config(struct bnb_model *made, struct error *error)
{
    struct buffer text = {0};
    struct hparams *hparams = NULL;
    if (append_config(made->model, &text, error))
        made->config = json_parse_python((const char *)text.bytes, text.length, error);
    if (made->config != NULL)
        hparams = hparams_parse((const char *)text.bytes, text.length, error);
    if (hparams != NULL)
        made->ties_head = json_bool(hparams_get(hparams, "tie_word_embeddings"), true);
    buffer_free(&text);
    hparams_free(hparams);
    return hparams != NULL;
}

/* Finds the type that dtype="auto" loads: the one that config.json names, or else that of the first weight. */
static const struct loaded_type *find_loaded(const struct hf_model *model, const struct json *config)
{
    const struct json *named = json_get(config, "dtype");
    named = named != NULL ? named : json_get(config, "torch_dtype");
    const struct dtype *first = NULL;
    for (size_t i = 0; i < model->tensors->n_tensors && first == NULL; i++) {
        const struct dtype *written = hf_written(model, &model->tensors->tensors[i]);
        first = written->kind == DTYPE_FLOAT ? written : NULL;
    }
    for (size_t i = 0; i < sizeof loaded_types / sizeof *loaded_types; i++)
        if (json_is(named, JSON_STRING) ? json_string_is(named, loaded_types[i].name) : first == loaded_types[i].dtype)
            return &loaded_types[i];
    return NULL;
}

static const struct class_names *find_class(const struct json *config)
{
    const struct class_names *class = classes;
    while (class->model_type != NULL && !json_string_is(json_get(config, "model_type"), class->model_type))
        class ++;
    return class;
}

struct bnb_model *bnb_model_new(const struct hf_model *model, struct error *error)
{
    struct bnb_model *made = memory_alloc(sizeof *made);
    *made = (struct bnb_model){.model = model};
    if (read_config(made, error)) {
        made->class = find_class(json_root(made->config));
        made->loaded = find_loaded(model, json_root(made->config));
        if (made->loaded != NULL)
            return made;
        error_set(error, "config.json names no dtype of bfloat16, float16 or float32");
    }
    bnb_model_free(made);
    return NULL;
}

void bnb_model_free(struct bnb_model *model)
{
    if (model == NULL)
        return;
    json_free(model->config);
    free(model);
}

/* Which weights are quantized. */

/* Returns the last part of a module's name. */
static const char *last_part(const char *module)
{
    const char *dot = strrchr(module, '.');
    return dot != NULL ? dot + 1 : module;
}

/* Reports whether a module with a matrix is an embedding, a head, or a norm for each head, and not linear. */
static bool is_other(const char *part)
{
    static const char *const names[] = {"wte", "wpe", "shared", "relative_attention_bias", "lm_head"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(part, names[i]) == 0)
            return true;
    return strstr(part, "embed") != NULL || text_ends_with(part, "norm");
}

static bool is_linear(const struct bnb_model *model, const struct tensor *tensor, const char *module)
{
    const char *routers = model->class->routers;
    return tensor->rank == 2 && tensor->shape[0] > 0 && tensor->shape[1] > 0 &&
           (tensor->dtype->kind == DTYPE_FLOAT || tensor->dtype->kind == DTYPE_BLOCK) && !is_other(last_part(module)) &&
           (routers == NULL || !text_ends_with(module, routers));
}

/* Reports whether the class has no parameter of that name: it is a buffer, or the head that shares the embedding. */
static bool is_left_out(const struct bnb_model *model, const char *name)
{
    const char *const *buffers = model->class->buffers;
    for (size_t i = 0; i < 2 && buffers[i] != NULL; i++)
        if (text_ends_with(name, buffers[i]))
            return true;
    return text_ends_with(name, ".rotary_emb.inv_freq") || (model->ties_head && strcmp(name, "lm_head.weight") == 0);
}

static const char *name_in_class(const struct bnb_model *model, const char *name, struct arena *arena)
{
    const char *prefix = model->class->prefix;
    if (prefix == NULL || text_starts_with(name, prefix) || text_starts_with(name, "lm_head."))
        return name;
    return arena_printf(arena, "%s%s", prefix, name);
}

/* The artifact. */

struct maker {
    const struct bnb_model *model;
    const struct bnb_type *type;
    struct artifact *artifact;
    struct arena *arena;
};

static void put(struct maker *maker, const char *name, const struct view *view)
{
    struct tensor *tensor = arena_alloc(maker->arena, sizeof *tensor);
    *tensor = tensor_of_view(name, view);
    maker->artifact->tensors[maker->artifact->n_tensors++] = (struct artifact_tensor){tensor, encoding_of(view->dtype)};
}

static void put_text(struct maker *maker, const char *name, const char *text)
{
    const uint64_t length = strlen(text);
    put(maker, name, view_literal(maker->arena, &u8_dtype, 1, &length, text));
}

static void put_4bit(struct maker *maker, const char *name, const struct view *matrix)
{
    static const uint64_t n_levels = BNB_LEVELS;
    struct arena *arena = maker->arena;
    const struct bnb_type *type = maker->type;
    put(maker, name, view_bnb_codes(arena, matrix, type->levels));
    put(maker, arena_printf(arena, "%s.absmax", name), view_bnb_maxima(arena, matrix));
    put(maker, arena_printf(arena, "%s.quant_map", name), view_literal(arena, &f32_dtype, 1, &n_levels, type->levels));
    put_text(maker, arena_printf(arena, "%s.quant_state.bitsandbytes__%s", name, type->name),
             arena_printf(arena,
                          "{\"quant_type\": \"%s\", \"blocksize\": %d, \"dtype\": \"%s\", \"shape\": [%" PRIu64
                          ", %" PRIu64 "]}",
                          type->name, BNB_BLOCK, maker->model->loaded->name, matrix->shape[0], matrix->shape[1]));
}

static void put_8bit(struct maker *maker, const char *name, const char *module, const struct view *matrix)
{
    static const uint8_t row_by_row = 0; /* the order of the codes */
    struct arena *arena = maker->arena;
    put(maker, name, view_bnb_rows(arena, matrix));
    put(maker, arena_printf(arena, "%s.SCB", module), view_bnb_row_maxima(arena, matrix));
    put(maker, arena_printf(arena, "%s.weight_format", module), view_literal(arena, &u8_dtype, 0, NULL, &row_by_row));
}

static void put_tensor(struct maker *maker, const struct tensor *tensor)
{
    struct arena *arena = maker->arena;
    const struct bnb_model *model = maker->model;
    const struct view *view = tensor_view(tensor, arena);
    const char *name = name_in_class(model, tensor->name, arena);
    bool is_weight = text_ends_with(name, weight);
    const char *module = arena_strndup(arena, name, strlen(name) - (is_weight ? strlen(weight) : 0));
    const char *part = arena_printf(arena, "|%s|", last_part(module)), *transposed = model->class->transposed;
    if (tensor->dtype->kind == DTYPE_FLOAT || tensor->dtype->kind == DTYPE_BLOCK)
        view = view_convert(arena, view, model->loaded->dtype);
    if (!is_weight || !is_linear(model, tensor, module)) {
        put(maker, name, view);
        return;
    }
    if (transposed != NULL && strstr(transposed, part) != NULL)
        view = view_transpose(arena, view);
    if (maker->type->levels != NULL)
        put_4bit(maker, name, view);
    else
        put_8bit(maker, name, module, view);
}

bool bnb_artifact(const struct bnb_model *model, const struct bnb_type *type, struct arena *arena,
                  struct artifact *ret_artifact, struct error *error)
{
    enum { MOST_PARTS = 4 };
    const struct tensor_set *tensors = model->model->tensors;
    struct artifact artifact = {.container = &safetensors_container};
    struct maker maker = {model, type, &artifact, arena};
    bool good = true;
    artifact_reserve(&artifact, MOST_PARTS * tensors->n_tensors);
    artifact.n_tensors = 0;
    for (size_t i = 0; i < tensors->n_tensors && good; i++) {
        const struct tensor *tensor = &tensors->tensors[i];
        if (is_left_out(model, tensor->name))
            continue;
        if (tensor->refusal != NULL)
            good = error_set(error, "'%.200s': %s", tensor->name, tensor->refusal);
        else
            put_tensor(&maker, tensor);
    }
    gguf_set_text(&artifact.metadata, "format", "pt");
    if (good)
        *ret_artifact = artifact;
    else
        artifact_free(&artifact);
    return good;
}

/* Documents. */

/* Returns {"quantization_config": ...}. */
static struct json_document *describe(const struct bnb_type *type, struct error *error)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_ASCII};
    bool is_4bit = type->levels != NULL;
    json_put_template(
        &writer,
        "{'quantization_config': {'_load_in_4bit': %b, '_load_in_8bit': %b, 'bnb_4bit_compute_dtype': 'float32',"
        " 'bnb_4bit_quant_storage': 'uint8', 'bnb_4bit_quant_type': %s, 'bnb_4bit_use_double_quant': false,"
        " 'llm_int8_enable_fp32_cpu_offload': false, 'llm_int8_has_fp16_weight': false,"
        " 'llm_int8_skip_modules': null, 'llm_int8_threshold': 6.0, 'load_in_4bit': %b, 'load_in_8bit': %b,"
        " 'quant_method': 'bitsandbytes'}}",
        is_4bit, !is_4bit, is_4bit ? type->name : "fp4", is_4bit, !is_4bit);
    struct json_document *document = json_parse((const char *)text.bytes, text.length, error);
    buffer_free(&text);
    return document;
}

static void put_document(const struct json_document *document, struct buffer *out)
{
    json_put_sorted(&(struct json_writer){.out = out, .letters = JSON_ASCII}, json_root(document), NULL);
    buffer_append_text(out, "\n");
}

bool bnb_write_config(const struct bnb_model *model, const struct bnb_type *type, struct buffer *out,
                      struct error *error)
{
    struct json_document *more = describe(type, error), *config = NULL;
    if (more != NULL)
        config = saved_config(json_root(model->config), model->loaded->name, json_root(more), error);
    if (config != NULL)
        put_document(config, out);
    json_free(more);
    json_free(config);
    return config != NULL;
}

bool bnb_write_generation_config(const struct bnb_model *model, struct buffer *out, struct error *error)
{
    struct document *source;
    if (!document_open(model->model->checkpoint, "generation_config.json", &source, error))
        return false;
    struct json_document *config = saved_config(json_root(model->config), model->loaded->name, NULL, error);
    if (config != NULL)
        saved_generation_config(source != NULL ? document_root(source) : NULL, json_root(config), out);
    document_close(source);
    json_free(config);
    return config != NULL;
}
