/* ctranslate2/TYPE/: Whisper as ct2-transformers-converter writes it from transformers' directory, for faster-whisper.
 *
 * The converter loads the model in the type that config.json names, F32 without one, and then quantizes: what an 8-bit
 * type does not quantize keeps that type, unless the name has another one. Tensors of equal values become aliases,
 * whatever they are: the output's are those of the embeddings, and zeros of one length are written once. So planning
 * model.bin compares one element of each tensor, and all elements where that is equal.
 *
 * Source: CTranslate2, python/ctranslate2/converters/transformers.py, WhisperLoader; converters/utils.py,
 * fuse_linear(); specs/model_spec.py, LayerSpec and LanguageModelSpec; specs/whisper_spec.py and transformer_spec.py.
 */
#include "formats/ctranslate2/ctranslate2.h"
#include "base/text.h"
#include "formats/documents.h"
#include "models/derive/foreign_names.h"
#include "models/facts.h"
#include "models/tokenizers/hf_vocabulary.h"
#include "products/product.h"
#include "products/whisper/forms.h"
#include "quant/pack/scaled_rows.h"
#include "quant/views/convert.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The converter's --quantization: the types of what it quantizes, and of the rest. */
static const struct ct2_type {
    const char *name, *weights, *rest; /* weights NULL: 8-bit rows; rest NULL: as loaded */
} types[] = {
    {"float16", "F16", "F16"},     {"float32", "F32", "F32"},     {"bfloat16", "BF16", "BF16"},    {"int8", NULL, NULL},
    {"int8_float32", NULL, "F32"}, {"int8_float16", NULL, "F16"}, {"int8_bfloat16", NULL, "BF16"},
};

struct variable {
    const char *name;
    const struct view *view; /* as loaded */
    const char *alias_of;    /* NULL: it is written */
    bool is_quantized;
};

/* The object: variables by name. */
struct ct2_model {
    struct variable *variables;
    size_t n_variables;
};

/* Making variables. */

struct making {
    struct arena *arena;
    const struct dtype *dtype; /* that the model is loaded in */
    struct tensor_set *taken;  /* under transformers' names without "model.", loaded */
    struct ct2_model *model;
    struct error *error;
};

static void add(struct making *making, const char *name, const struct view *view, bool is_quantized)
{
    struct ct2_model *model = making->model;
    model->variables = arena_grow(making->arena, model->variables, model->n_variables, sizeof *model->variables);
    model->variables[model->n_variables++] = (struct variable){name, view, NULL, is_quantized};
}

static void add_number(struct making *making, const char *side, const char *name, const char *dtype, int number)
{
    uint8_t *bytes = arena_alloc(making->arena, 2);
    bytes[0] = (uint8_t)number;
    bytes[1] = (uint8_t)(number >> 8);
    add(making, arena_printf(making->arena, "%s/%s", side, name),
        view_literal(making->arena, dtype_by_name(dtype), 0, NULL, bytes), false);
}

static void take(void *context, const char *name, const char *ggml_name, const struct view *view)
{
    struct making *making = context;
    tensor_set_add_view(making->taken, name, view_convert(making->arena, view, making->dtype));
}

static const struct view *taken(const struct making *making, const char *begin, const char *here, const char *leaf)
{
    const char *name = arena_printf(making->arena, "%s.%s.%s", begin, here, leaf);
    const struct tensor *tensor = tensor_set_find_text(making->taken, name);
    return tensor != NULL ? tensor_view(tensor, making->arena) : NULL;
}

/* A bias that Whisper's keys lack. */
static const struct view *zeros(const struct making *making, uint64_t length)
{
    static const uint8_t zero[4];
    static const uint64_t one[1] = {1}, still[1] = {0};
    const struct view *single = view_literal(making->arena, making->dtype, 1, one, zero);
    return view_strided(making->arena, single, 1, &length, 0, still);
}

/* Joins the tensors of modules along their first axis. */
static bool join(struct making *making, const struct ctranslate2_module *module, const char *begin, const char *leaf,
                 const struct view **ret_view)
{
    const struct view *parts[CTRANSLATE2_STACKED];
    size_t n = 0;
    for (; n < CTRANSLATE2_STACKED && module->here[n] != NULL; n++) {
        const struct view *weight = taken(making, begin, module->here[n], "weight");
        parts[n] = taken(making, begin, module->here[n], leaf);
        parts[n] = parts[n] != NULL ? parts[n] : zeros(making, weight->shape[0]);
        if (parts[n]->rank == 2 && parts[n]->shape[1] != parts[0]->shape[1])
            return error_set(making->error, "%s.%s.%s has other columns than %s", begin, module->here[n], leaf,
                             module->here[0]);
    }
    *ret_view = n == 1 ? parts[0] : view_concatenate(making->arena, parts, n, 0);
    return true;
}

static bool add_leaf(struct making *making, const struct ctranslate2_module *module, const char *begin,
                     const char *begin_there, const char *leaf, const char *leaf_there)
{
    const struct view *view = NULL;
    if (!join(making, module, begin, leaf, &view))
        return false;
    add(making, arena_printf(making->arena, "%s/%s/%s", begin_there, module->there, leaf_there), view,
        strcmp(leaf_there, "weight") == 0);
    return true;
}

/* Adds the modules of a list that the side has. */
static bool add_modules(struct making *making, const struct ctranslate2_module *module, const char *side,
                        const char *begin, const char *begin_there)
{
    bool good = true;
    for (; good && module->there != NULL; module++) {
        bool is_norm = text_ends_with(module->there, "layer_norm");
        bool is_positions = strcmp(module->there, "position_encodings") == 0;
        if (module->side != NULL && strcmp(module->side, side) != 0)
            continue;
        good = add_leaf(making, module, begin, begin_there, "weight",
                        is_norm        ? "gamma"
                        : is_positions ? "encodings"
                                       : "weight");
        if (good && !is_positions && strcmp(module->there, "embeddings") != 0)
            good = add_leaf(making, module, begin, begin_there, "bias", is_norm ? "beta" : "bias");
    }
    return good;
}

static bool add_side(struct making *making, const struct json *config, const char *side)
{
    struct arena *arena = making->arena;
    uint64_t n_layers, n_heads;
    if (!whisper_number(config, arena_printf(arena, "%s_layers", side), &n_layers, making->error) ||
        !whisper_number(config, arena_printf(arena, "%s_attention_heads", side), &n_heads, making->error))
        return false;
    if (n_heads > INT16_MAX)
        return error_set(making->error, "config.json: %" PRIu64 " heads, and CTranslate2 has 16 bits for them",
                         n_heads);
    add_number(making, side, "num_heads", "I16", (int)n_heads);
    bool good = add_modules(making, ctranslate2_of_sides, side, side, side);
    for (uint64_t i = 0; good && i < n_layers; i++)
        good = add_modules(making, ctranslate2_of_layers, side, arena_printf(arena, "%s.layers.%" PRIu64, side, i),
                           arena_printf(arena, "%s/layer_%" PRIu64, side, i));
    return good;
}

/* Adds the output, which is tied to the embeddings. */
static void add_output(struct making *making)
{
    add(making, "decoder/projection/weight", taken(making, "decoder", "embed_tokens", "weight"), true);
    making->model->variables[making->model->n_variables - 1].alias_of = "decoder/embeddings/weight";
}

/* The numbers of WhisperSpec, which are the same for all models. */
static void add_numbers(struct making *making)
{
    enum { GELU = 3 };
    static const struct {
        const char *name, *dtype;
        int number;
    } numbers[] = {
        {"activation", "I8", GELU},
        {"alibi", "I8", 0},
        {"alibi_use_positive_positions", "I8", 0},
        {"alignment_heads", "I16", 1},
        {"alignment_layer", "I16", -1},
        {"pre_norm", "I8", 1},
        {"scale_alibi", "I8", 0},
        {"scale_embeddings", "I8", 0},
        {"start_from_zero_embedding", "I8", 0},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        add_number(making, "decoder", numbers[i].name, numbers[i].dtype, numbers[i].number);
}

/* Aliases. */

static bool same_shape(const struct view *a, const struct view *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

/* Compares all elements, by pieces up to the first that differ. */
static bool compare(const struct view *a, const struct view *b, bool *ret_equal, struct error *error)
{
    enum { PIECE = 4096 };
    float of_a[PIECE], of_b[PIECE];
    *ret_equal = true;
    for (uint64_t done = 0; *ret_equal && done < a->n_elements;) {
        size_t n = a->n_elements - done < PIECE ? a->n_elements - done : PIECE;
        if (!convert_values(a, done, n, of_a, error) || !convert_values(b, done, n, of_b, error))
            return false;
        for (size_t i = 0; i < n && *ret_equal; i++)
            *ret_equal = of_a[i] == of_b[i];
        done += n;
    }
    return true;
}

/* Gets the last elements of variables: the first ones of joined biases are all 0. */
static bool read_last(const struct ct2_model *model, float *last, struct error *error)
{
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct view *view = model->variables[i].view;
        last[i] = 0;
        if (view->rank > 0 && view->n_elements > 0 && !convert_values(view, view->n_elements - 1, 1, &last[i], error))
            return error_prefix(error, "%s", model->variables[i].name);
    }
    return true;
}

/* Makes a variable an alias of the first one that equals it. */
static bool find_alias(struct ct2_model *model, size_t number, const float *last, struct error *error)
{
    struct variable *variable = &model->variables[number];
    for (size_t i = 0; i < number && variable->alias_of == NULL && variable->view->rank > 0; i++) {
        const struct variable *other = &model->variables[i];
        bool is_equal = false;
        if (other->alias_of != NULL || last[i] != last[number] || !same_shape(other->view, variable->view))
            continue;
        if (!compare(other->view, variable->view, &is_equal, error))
            return error_prefix(error, "%s", variable->name);
        variable->alias_of = is_equal ? other->name : NULL;
    }
    return true;
}

static bool find_aliases(struct ct2_model *model, struct error *error)
{
    float *last = memory_alloc(model->n_variables * sizeof *last);
    bool good = read_last(model, last, error);
    for (size_t i = 0; good && i < model->n_variables; i++)
        good = find_alias(model, i, last, error);
    free(last);
    return good;
}

/* The object. */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct variable *)a)->name, ((const struct variable *)b)->name);
}

/* Gets the type that from_pretrained() loads the model in. */
static bool get_dtype(const struct json *config, const struct dtype **ret_dtype, struct error *error)
{
    static const char *const names[][2] = {{"float32", "F32"}, {"float16", "F16"}, {"bfloat16", "BF16"}};
    const char *name = json_string(json_get(config, "dtype"), NULL);
    name = name != NULL ? name : json_string(json_get(config, "torch_dtype"), NULL);
    name = name != NULL ? name : "float32";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i][0]) == 0) {
            *ret_dtype = dtype_by_name(names[i][1]);
            return true;
        }
    return error_set(error, "config.json: torch_dtype '%.100s': CTranslate2 has no such type", name);
}

static bool make_variables(struct making *making, const struct checkpoint *checkpoint, const struct json *config)
{
    struct error *error = making->error;
    if (!json_bool(json_get(config, "tie_word_embeddings"), true))
        return error_set(error, "config.json: tie_word_embeddings is false; only tied Whisper models are supported");
    if (!get_dtype(config, &making->dtype, error) ||
        !whisper_take_tensors(checkpoint, config, making->arena, take, making, error) ||
        !tensor_set_seal(making->taken, error) || !add_side(making, config, "encoder") ||
        !add_side(making, config, "decoder"))
        return false;
    add_output(making);
    add_numbers(making);
    qsort(making->model->variables, making->model->n_variables, sizeof *making->model->variables, by_name);
    return find_aliases(making->model, error);
}

static const void *make_model(const struct product_input *input, struct arena *arena, struct error *error)
{
    struct document *document;
    struct ct2_model *model = arena_alloc(arena, sizeof *model);
    struct making making = {.arena = arena, .taken = tensor_set_new(arena), .model = model, .error = error};
    *model = (struct ct2_model){0};
    if (!document_open(input->checkpoint, "config.json", &document, error))
        return NULL;
    bool good = make_variables(&making, input->checkpoint, document_root(document));
    document_close(document);
    return good ? model : NULL;
}

/* model.bin. */

static void put(struct artifact *artifact, struct arena *arena, const char *name, const struct view *view)
{
    struct tensor *tensor = arena_alloc(arena, sizeof *tensor);
    *tensor = tensor_of_view(name, view);
    artifact->tensors[artifact->n_tensors++] = (struct artifact_tensor){tensor, encoding_of(tensor->dtype)};
}

static void put_variable(struct artifact *artifact, struct arena *arena, const struct variable *variable,
                         const struct ct2_type *type)
{
    const char *wanted = variable->is_quantized ? type->weights : type->rest;
    const struct view *view = variable->view;
    if (view->rank == 0) {
        put(artifact, arena, variable->name, view);
    } else if (variable->is_quantized && view->rank > 1 && type->weights == NULL) {
        put(artifact, arena, variable->name, view_int8_rows(arena, view));
        put(artifact, arena, arena_printf(arena, "%s_scale", variable->name), view_int8_row_scales(arena, view));
    } else {
        view = wanted != NULL ? view_convert(arena, view, dtype_by_name(wanted)) : view;
        put(artifact, arena, variable->name, view);
    }
}

static enum outcome make_weights(const struct product_input *input, const void *made, const void *type,
                                 struct arena *arena, struct artifact *ret_artifact, struct error *error)
{
    const struct ct2_model *model = made;
    *ret_artifact = (struct artifact){.container = &ctranslate2_container};
    artifact_reserve(ret_artifact, 2 * model->n_variables);
    ret_artifact->n_tensors = 0;
    gguf_set_text(&ret_artifact->metadata, "specification", "WhisperSpec");
    gguf_set_text(&ret_artifact->metadata, "revision", "3");
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        if (variable->alias_of != NULL)
            gguf_set_text(&ret_artifact->metadata, variable->name, variable->alias_of);
        else
            put_variable(ret_artifact, arena, variable, type);
    }
    return OK;
}

/* Texts. */

/* Finds the id of a token of the tokenizer that is no language: those of the converter's list. */
static bool is_language(const char *text, size_t length)
{
    static const char *const others[] = {
        "<|endoftext|>", "<|startoftranscript|>", "<|translate|>",  "<|transcribe|>",
        "<|startoflm|>", "<|startofprev|>",       "<|nocaptions|>", "<|notimestamps|>",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strlen(others[i]) == length && memcmp(others[i], text, length) == 0)
            return false;
    return true;
}

/* A tokenizer, loaded. */
struct tokens {
    struct tokenizer_files files;
    struct hf_vocabulary vocabulary;
    struct hparams *hparams;
};

static void close_tokens(struct tokens *tokens)
{
    hf_vocabulary_free(&tokens->vocabulary);
    tokenizer_files_free(&tokens->files);
    hparams_free(tokens->hparams);
}

static bool open_tokens(const struct checkpoint *checkpoint, struct tokens *ret_tokens, struct error *error)
{
    ret_tokens->hparams = hparams_of(checkpoint, error);
    if (ret_tokens->hparams == NULL)
        return false;
    const struct vocab_input input = {.checkpoint = checkpoint,
                                      .hparams = ret_tokens->hparams,
                                      .owner = ret_tokens->hparams,
                                      .architecture = "whisper",
                                      .class_name = "WhisperForConditionalGeneration"};
    enum vocab_result result = VOCAB_FAILED;
    bool has_files = tokenizer_files_load(checkpoint, &ret_tokens->files, error);
    if (has_files)
        result = hf_vocabulary_load(&input, &ret_tokens->files, &ret_tokens->vocabulary, error);
    if (result == VOCAB_ABSENT)
        error_set(error, "tokenizer.json is missing, which the vocabulary is made from");
    if (result != VOCAB_ADDED && has_files)
        tokenizer_files_free(&ret_tokens->files);
    if (result != VOCAB_ADDED)
        hparams_free(ret_tokens->hparams);
    return result == VOCAB_ADDED;
}

static int by_number(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return (one > other) - (one < other);
}

/* Puts the ids of an object {token: id}, in their order. */
static bool put_sorted_ids(struct json_writer *writer, const struct json *ids, struct error *error)
{
    size_t n = 0;
    bool good = true;
    uint64_t *numbers = memory_alloc((json_count_members(ids) + 1) * sizeof *numbers);
    for (struct json_member member = {0}; good && json_next_member(ids, &member);)
        good = json_u64(member.value, &numbers[n++]) ||
               error_set(error, "generation_config.json: lang_to_id has an id that is no whole number");
    if (good && n > 0)
        qsort(numbers, n, sizeof *numbers, by_number);
    json_begin_array(writer, "lang_ids");
    for (size_t i = 0; good && i < n; i++)
        json_put_number(writer, NULL, numbers[i]);
    json_end(writer);
    free(numbers);
    return good;
}

/* Puts the ids of the tokenizer's additional special tokens that are languages. */
static bool put_languages(struct json_writer *writer, const struct checkpoint *checkpoint, struct error *error)
{
    static const char key[] = "additional_special_tokens";
    struct tokens tokens;
    if (!open_tokens(checkpoint, &tokens, error))
        return false;
    const struct json *list = json_get(tokens.files.config, key);
    list = list != NULL ? list : json_get(tokens.files.special_map, key);
    json_begin_array(writer, "lang_ids");
    for (const struct json *each = json_first(list); each != NULL; each = json_next(each)) {
        size_t length = 0;
        uint64_t id;
        const char *text = token_content(each, &length);
        if (text != NULL && is_language(text, length) && hf_token_id(&tokens.vocabulary, text, length, &id))
            json_put_number(writer, NULL, id);
    }
    json_end(writer);
    close_tokens(&tokens);
    return true;
}

/* Puts the heads of the last half of the layers. */
static bool put_usual_heads(struct json_writer *writer, const struct json *config, struct error *error)
{
    enum { MOST = 1 << 16 }; /* many more than any model has */
    uint64_t n_layers, n_heads;
    if (!whisper_number(config, "decoder_layers", &n_layers, error) ||
        !whisper_number(config, "decoder_attention_heads", &n_heads, error))
        return false;
    if (n_layers > MOST / (n_heads + 1))
        return error_set(error, "config.json: %" PRIu64 " layers of %" PRIu64 " heads are too many", n_layers, n_heads);
    json_begin_array(writer, "alignment_heads");
    for (uint64_t i = n_layers / 2; i < n_layers; i++)
        for (uint64_t k = 0; k < n_heads; k++) {
            json_begin_array(writer, NULL);
            json_put_number(writer, NULL, i);
            json_put_number(writer, NULL, k);
            json_end(writer);
        }
    json_end(writer);
    return true;
}

/* Puts a member under another key; null if it is missing. */
static void put_member(struct json_writer *writer, const char *key, const struct json *object, const char *own)
{
    const struct json *value = json_get(object, own);
    if (value == NULL) {
        json_put_null(writer, key);
        return;
    }
    json_put_key(writer, key, strlen(key));
    json_put_edited(writer, value, NULL, NULL);
}

/* If transformers derived the file from config.json, it reads from it only what GenerationConfig has. */
static bool put_config(struct json_writer *writer, const struct checkpoint *checkpoint, const struct json *config,
                       const struct json *generation, struct error *error)
{
    static const char heads[] = "alignment_heads";
    const struct json *own = json_bool(json_get(generation, "_from_model_config"), false) ? NULL : generation;
    const struct json *aligned = json_get(own, heads), *languages = json_get(own, "lang_to_id");
    bool has_heads = aligned != NULL && !json_is(aligned, JSON_NULL);
    json_begin_object(writer, NULL);
    if (has_heads)
        put_member(writer, heads, generation, heads);
    else if (!put_usual_heads(writer, config, error))
        return false;
    if (languages != NULL ? !put_sorted_ids(writer, languages, error) : !put_languages(writer, checkpoint, error))
        return false;
    put_member(writer, "suppress_ids", generation, "suppress_tokens");
    put_member(writer, "suppress_ids_begin", generation, "begin_suppress_tokens");
    json_end(writer);
    return true;
}

static enum outcome write_config(const struct product_input *input, const void *made, const void *what,
                                 struct buffer *out, struct error *error)
{
    struct document *config = NULL, *generation = NULL;
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    bool good = document_open(input->checkpoint, "config.json", &config, error) &&
                document_open(input->checkpoint, "generation_config.json", &generation, error);
    if (good && generation == NULL)
        good = error_set(error, "generation_config.json is missing, which names the tokens that are suppressed");
    good = good && put_config(&writer, input->checkpoint, document_root(config), document_root(generation), error);
    buffer_append_text(out, "\n");
    document_close(config);
    document_close(generation);
    return good ? OK : REPORTED;
}

/* Puts the tokens by id, up to the model's number, and timestamps for the rest. */
static bool put_vocabulary(struct json_writer *writer, struct hf_vocabulary *vocabulary, uint64_t n_wanted,
                           struct error *error)
{
    struct token_list list;
    uint64_t n = 0;
    vocabulary->keeps_added = true;
    if (!hf_token_list(vocabulary, vocabulary->n_ids, &list, error))
        return false;
    json_begin_array(writer, NULL);
    for (uint64_t i = 0; i < list.n_tokens && n < n_wanted; i++)
        if (list.tokens[i].type != TOKEN_UNUSED) {
            json_put_text_n(writer, NULL, list.tokens[i].text, list.tokens[i].length);
            n++;
        }
    for (uint64_t i = 0; n < n_wanted; i++, n++) {
        char text[40];
        snprintf(text, sizeof text, "<|%.2f|>", (double)i * 0.02);
        json_put_text(writer, NULL, text);
    }
    json_end(writer);
    token_list_free(&list);
    return true;
}

/* Gets the number of tokens, which the embeddings have rows for. */
static bool get_vocabulary_size(const struct checkpoint *checkpoint, uint64_t *ret_size, struct error *error)
{
    static const char name[] = "model.decoder.embed_tokens.weight";
    const struct tensor *rows = tensor_set_find_text(checkpoint->tensors, name);
    struct document *config;
    rows = rows != NULL ? rows : tensor_set_find_text(checkpoint->tensors, name + strlen("model."));
    if (!document_open(checkpoint, "config.json", &config, error))
        return false;
    bool good = whisper_number(document_root(config), "vocab_size", ret_size, error);
    document_close(config);
    if (good && (rows == NULL || rows->rank != 2 || rows->shape[0] != *ret_size || *ret_size > TOKEN_LIST_MAX))
        return error_set(error, "config.json: vocab_size is %" PRIu64 ", and %s does not have as many rows", *ret_size,
                         name);
    return good;
}

static enum outcome write_vocabulary(const struct product_input *input, const void *made, const void *what,
                                     struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    struct tokens tokens;
    uint64_t size;
    if (!get_vocabulary_size(input->checkpoint, &size, error) || !open_tokens(input->checkpoint, &tokens, error))
        return REPORTED;
    bool good = put_vocabulary(&writer, &tokens.vocabulary, size, error);
    close_tokens(&tokens);
    return good ? OK : REPORTED;
}

/* The files. */

static bool is_offered(const struct product_input *input, struct product_list *hints)
{
    if (whisper_hugging_face.is(input->checkpoint))
        return true;
    product_hint(hints, "ctranslate2", "only Whisper models in transformers' directories become CTranslate2's");
    return false;
}

static void find_variants(const struct product_input *input, struct arena *arena, product_found *found, void *context)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        found(context, types[i].name, &types[i], true);
}

static bool list_files(const struct product_input *input, const void *made, const void *type, struct product_list *list,
                       struct error *error)
{
    static const char *const copied[] = {"tokenizer.json", "preprocessor_config.json"};
    product_add(list, (struct product_file){.path = "model.bin", .make = make_weights, .what = type});
    product_add(list, (struct product_file){.path = "config.json", .write = write_config, .needs_no_object = true});
    product_add(list,
                (struct product_file){.path = "vocabulary.json", .write = write_vocabulary, .needs_no_object = true});
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++) {
        const struct side_file *side = checkpoint_side_file(input->checkpoint, copied[i]);
        if (side != NULL)
            product_add(list, (struct product_file){.path = copied[i], .side = side});
    }
    return true;
}

const struct product ctranslate2_product = {
    .name = "ctranslate2",
    .summary = "ctranslate2/TYPE/: Whisper models for faster-whisper",
    .root = "ctranslate2",
    .opened = OPENED_AT_ROOT,
    .is_offered = is_offered,
    .variants = find_variants,
    .make = make_model,
    .files = list_files,
};
