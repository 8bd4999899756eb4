#include "models/engines/loaded.h"

#include "base/text.h"
#include "formats/documents.h"
#include "models/config/hparams.h"
#include "models/derive/plain_config.h"
#include "models/huggingface/shards.h"
#include "quant/views/convert.h"

#include <string.h>

static const char weight[] = ".weight";

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

struct loading {
    struct arena *arena;
    struct loaded_model *made;
    const struct class_names *class;
    const struct dtype *dtype;
    bool ties_head;
    struct error *error;
};

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

static void free_config(void *config)
{
    json_free(config);
}

/* Reads config.json, and whether the class has the embedding as its head, too. */
static bool read_config(struct loading *loading)
{
    struct loaded_model *made = loading->made;
    struct buffer text = {0};
    struct hparams *hparams = NULL;
    if (append_config(made->model, &text, loading->error))
        made->config = json_parse_python((const char *)text.bytes, text.length, loading->error);
    if (made->config != NULL) {
        arena_on_free(loading->arena, free_config, made->config);
        hparams = hparams_parse((const char *)text.bytes, text.length, loading->error);
    }
    if (hparams != NULL)
        loading->ties_head = json_bool(hparams_get(hparams, "tie_word_embeddings"), true);
    buffer_free(&text);
    bool good = hparams != NULL;
    hparams_free(hparams);
    return good;
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

/* Which tensors there are, and what they are. */

size_t loaded_module(const char *name)
{
    return text_ends_with(name, weight) ? strlen(name) - strlen(weight) : 0;
}

/* Returns the last part of a module's name. */
static const char *last_part(const char *module)
{
    const char *dot = strrchr(module, '.');
    return dot != NULL ? dot + 1 : module;
}

/* Reports whether a module with a matrix is an embedding, or a norm for each head, and not linear. */
static bool is_other(const char *part)
{
    static const char *const names[] = {"wte", "wpe", "shared", "relative_attention_bias"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(part, names[i]) == 0)
            return true;
    return strstr(part, "embed") != NULL || text_ends_with(part, "norm");
}

static bool is_number(const struct dtype *dtype)
{
    return dtype->kind == DTYPE_FLOAT || dtype->kind == DTYPE_BLOCK;
}

static enum loaded_kind kind_of(const struct loading *loading, const struct tensor *tensor, const char *name)
{
    const struct class_names *class = loading->class;
    size_t length = loaded_module(name);
    const char *module = arena_strndup(loading->arena, name, length), *part = last_part(module);
    if (length == 0 || tensor->rank != 2 || tensor->shape[0] == 0 || tensor->shape[1] == 0 ||
        !is_number(tensor->dtype) || is_other(part) ||
        (class->routers != NULL && text_ends_with(module, class->routers)))
        return LOADED_OTHER;
    if (strcmp(part, "lm_head") == 0)
        return LOADED_HEAD;
    bool is_transposed =
        class->transposed != NULL && strstr(class->transposed, arena_printf(loading->arena, "|%s|", part)) != NULL;
    return is_transposed ? LOADED_TRANSPOSED : LOADED_LINEAR;
}

/* Reports whether the class has no parameter of that name: it is a buffer, or the head that shares the embedding. */
static bool is_left_out(const struct loading *loading, const char *name)
{
    const char *const *buffers = loading->class->buffers;
    for (size_t i = 0; i < 2 && buffers[i] != NULL; i++)
        if (text_ends_with(name, buffers[i]))
            return true;
    return text_ends_with(name, ".rotary_emb.inv_freq") || (loading->ties_head && strcmp(name, "lm_head.weight") == 0);
}

static const char *name_in_class(const struct loading *loading, const char *name)
{
    const char *prefix = loading->class->prefix;
    if (prefix == NULL || text_starts_with(name, prefix) || text_starts_with(name, "lm_head."))
        return name;
    return arena_printf(loading->arena, "%s%s", prefix, name);
}

static bool load_tensors(struct loading *loading)
{
    struct loaded_model *made = loading->made;
    const struct tensor_set *set = made->model->tensors;
    const size_t *order = module_order(set, made->model->model_type, loading->arena);
    made->tensors = arena_array(loading->arena, set->n_tensors, sizeof *made->tensors);
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[order[i]];
        if (is_left_out(loading, tensor->name))
            continue;
        if (tensor->refusal != NULL)
            return error_set(loading->error, "'%.200s': %s", tensor->name, tensor->refusal);
        const struct view *view = tensor_view(tensor, loading->arena);
        const char *name = name_in_class(loading, tensor->name);
        if (is_number(tensor->dtype))
            view = view_convert(loading->arena, view, loading->dtype);
        made->tensors[made->n_tensors++] = (struct loaded_tensor){name, view, kind_of(loading, tensor, name)};
    }
    return true;
}

const struct loaded_model *loaded_model_new(struct arena *arena, const struct hf_model *model, struct error *error)
{
    struct loaded_model *made = arena_alloc(arena, sizeof *made);
    struct loading loading = {.arena = arena, .made = made, .error = error};
    made->model = model;
    if (!read_config(&loading))
        return NULL;
    const struct loaded_type *type = find_loaded(model, json_root(made->config));
    if (type == NULL) {
        error_set(error, "config.json names no dtype of bfloat16, float16 or float32");
        return NULL;
    }
    loading.class = find_class(json_root(made->config));
    loading.dtype = type->dtype;
    made->dtype_name = type->name;
    return load_tensors(&loading) ? made : NULL;
}

bool loaded_write_generation_config(const struct loaded_model *model, enum transformers version, struct buffer *out,
                                    struct error *error)
{
    struct document *source;
    if (!document_open(model->model->checkpoint, "generation_config.json", &source, error))
        return false;
    struct json_document *config = saved_config(json_root(model->config), model->dtype_name, NULL, error);
    if (config != NULL)
        saved_generation_config(source != NULL ? document_root(source) : NULL, json_root(config), version, out);
    document_close(source);
    json_free(config);
    return config != NULL;
}
