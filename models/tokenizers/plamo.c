/* "plamo2", the tokenizer of PLaMo 2 and 3: tokenizer.jsonl has an array [text, score, type, ...] a line.
 * conversion/base.py (_set_vocab_plamo). */
#include "base/text.h"
#include "models/tokenizers/token_list.h"
#include "models/tokenizers/tokenizer_files.h"

#include <stdlib.h>
#include <string.h>

static const char file_name[] = "tokenizer.jsonl";

/* Reads the lines, without the empty ones, as one array. */
static struct json_document *read_lines(const struct checkpoint *checkpoint, bool *ret_absent, struct error *error)
{
    size_t length;
    char *text = document_text(checkpoint, file_name, &length, ret_absent, error);
    if (text == NULL)
        return NULL;
    struct buffer array = {0};
    buffer_append_text(&array, "[");
    for (size_t at = 0, n; at < length; at += n + 1) {
        n = strcspn(text + at, "\n");
        if (strspn(text + at, " \t\r\f\v") < n)
            buffer_append_text(&array, array.length > 1 ? "," : "");
        buffer_append(&array, text + at, n);
    }
    buffer_append_text(&array, "]");
    free(text);
    struct json_document *document = json_parse((const char *)array.bytes, array.length, error);
    buffer_free(&array);
    if (document == NULL)
        error_prefix(error, file_name);
    return document;
}

/* What the converter knows of a tokenizer's class, since the change PLAMO_MODELS. */
struct plamo {
    const char *class_name, *model, *end_of_turn;
    const char *const *normal; /* tokens that are normal, up to a NULL */
};

static const struct plamo classes[] = {
    {"Plamo2Tokenizer", "plamo2", "<|plamo:op|>", (const char *const[]){NULL}},
    {"Plamo3Tokenizer", "plamo3", "<|plamo:tag|>",
     (const char *const[]){"<|plamo:begin_", "<|plamo:end_", ":plamo|>", NULL}},
};

static const struct plamo older = {NULL, "plamo2", NULL, (const char *const[]){NULL}};

/* Sets an error if the converter refuses the class. */
static const struct plamo *find_class(const struct vocab_input *input, const struct json *config, struct error *error)
{
    const char *name = json_string(json_get(config, "tokenizer_class"), NULL);
    if (!follows(input->references, PLAMO_MODELS))
        return &older;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (name != NULL && strcmp(name, classes[i].class_name) == 0)
            return &classes[i];
    error_set(error, "tokenizer_config.json: tokenizer_class is neither Plamo2Tokenizer nor Plamo3Tokenizer");
    return NULL;
}

static enum token_type type_of(const struct plamo *plamo, const struct json *type, const char *text, size_t length)
{
    static const char start[] = "<|plamo:", end[] = "|>";
    for (const char *const *normal = plamo->normal; *normal != NULL; normal++)
        if (length == strlen(*normal) && memcmp(text, *normal, length) == 0)
            return TOKEN_NORMAL;
    if (json_string_is(type, "UNKNOWN"))
        return TOKEN_UNKNOWN;
    if (json_string_is(type, "CONTROL"))
        return TOKEN_CONTROL;
    if (json_string_is(type, "BYTE"))
        return TOKEN_BYTE;
    bool is_named = length >= sizeof start - 1 && memcmp(text, start, sizeof start - 1) == 0 &&
                    memcmp(text + length - (sizeof end - 1), end, sizeof end - 1) == 0;
    return is_named ? TOKEN_CONTROL : TOKEN_NORMAL;
}

static bool set_tokens(struct token_list *list, const struct plamo *plamo, const struct json *lines,
                       struct error *error)
{
    uint64_t id = 0;
    for (const struct json *line = json_first(lines); line != NULL; line = json_next(line), id++) {
        size_t length;
        double score;
        const struct json *text = json_first(line), *number = text ? json_next(text) : NULL;
        const char *bytes = json_string(text, &length);
        if (!json_is(line, JSON_ARRAY) || bytes == NULL || number == NULL || !json_double(number, &score))
            return error_set(error, "%s: token %llu is not an array of a text, a score and a type", file_name,
                             (unsigned long long)id);
        token_list_set(list, id, bytes, length, (float)score, type_of(plamo, json_next(number), bytes, length));
    }
    for (uint64_t i = id; i < list->n_tokens; i++) {
        const char *text = arena_printf(list->arena, "[PAD%llu]", (unsigned long long)(i - id + 1));
        token_list_set(list, i, text, strlen(text), -1000.f, TOKEN_UNUSED);
    }
    return true;
}

/* Returns the first token of that text, or n_tokens. */
static uint64_t find_token(const struct token_list *list, const char *text, size_t length)
{
    uint64_t id = 0;
    while (id < list->n_tokens &&
           (list->tokens[id].length != length || memcmp(list->tokens[id].text, text, length) != 0))
        id++;
    return id;
}

static bool write_end_of_turn(struct gguf_kvs *kvs, const struct token_list *list, const char *text,
                              struct error *error)
{
    enum { END_OF_TURN = 4 }; /* in builds that do not look for its text */
    uint64_t id = text != NULL ? find_token(list, text, strlen(text)) : END_OF_TURN;
    if (text != NULL && id == list->n_tokens)
        return error_set(error, "%s: %s is missing", file_name, text);
    gguf_set_u32(kvs, "tokenizer.ggml.eot_token_id", (uint32_t)id);
    return true;
}

/* Writes add_bos_token and add_eos_token of tokenizer_config.json. */
static void write_adds(struct gguf_kvs *kvs, const struct json *config)
{
    static const char *const adds[][2] = {{"add_bos_token", "tokenizer.ggml.add_bos_token"},
                                          {"add_eos_token", "tokenizer.ggml.add_eos_token"}};
    for (size_t i = 0; i < sizeof adds / sizeof *adds; i++) {
        const struct json *add = json_get(config, adds[i][0]);
        if (json_is(add, JSON_TRUE) || json_is(add, JSON_FALSE))
            gguf_set_bool(kvs, adds[i][1], json_is(add, JSON_TRUE));
    }
}

static bool write_specials(struct gguf_kvs *kvs, const struct token_list *list, const struct plamo *plamo,
                           const struct json *config, struct error *error)
{
    static const char *const specials[][2] = {{"bos_token", "tokenizer.ggml.bos_token_id"},
                                              {"eos_token", "tokenizer.ggml.eos_token_id"},
                                              {"pad_token", "tokenizer.ggml.padding_token_id"},
                                              {"sep_token", "tokenizer.ggml.seperator_token_id"},
                                              {"unk_token", "tokenizer.ggml.unknown_token_id"}};
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        size_t length;
        const struct json *value = json_get(config, specials[i][0]);
        const char *text = token_content(value, &length);
        if (value == NULL || json_is(value, JSON_NULL))
            continue;
        uint64_t id = text != NULL ? find_token(list, text, length) : list->n_tokens;
        if (id == list->n_tokens)
            return error_set(error, "tokenizer_config.json: %s is not a token of %s", specials[i][0], file_name);
        gguf_set_u32(kvs, specials[i][1], (uint32_t)id);
    }
    if (!write_end_of_turn(kvs, list, plamo->end_of_turn, error))
        return false;
    gguf_set_bool(kvs, "tokenizer.ggml.add_space_prefix", false);
    return true;
}

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct json *lines,
                       const struct json *config, struct error *error)
{
    uint64_t n_tokens, n_lines = json_count(lines);
    struct token_list list;
    const struct plamo *plamo = find_class(input, config, error);
    if (plamo == NULL || !hparams_count(input->hparams, "vocab_size", 1, TOKEN_LIST_MAX, &n_tokens, error))
        return false;
    n_tokens = n_tokens > n_lines ? n_tokens : n_lines;
    if (!token_count_fits(input, n_tokens, n_lines, error) || !token_list_init(&list, n_tokens, 0, error))
        return false;
    bool written = set_tokens(&list, plamo, lines, error);
    if (written) {
        token_list_write(&list, plamo->model, "default", true, kvs);
        written = write_specials(kvs, &list, plamo, config, error);
        if (written && follows(input->references, PLAMO_ADDS))
            write_adds(kvs, config);
    }
    token_list_free(&list);
    return written;
}

static enum vocab_result add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    bool absent;
    struct document *config;
    struct json_document *lines = read_lines(input->checkpoint, &absent, error);
    if (lines == NULL)
        return absent ? VOCAB_ABSENT : VOCAB_FAILED;
    bool written = document_open(input->checkpoint, "tokenizer_config.json", &config, error);
    if (written) {
        written = write_keys(kvs, input, json_root(lines), document_root(config), error);
        document_close(config);
    }
    json_free(lines);
    return written ? VOCAB_ADDED : VOCAB_FAILED;
}

const struct vocab plamo_vocab = {.name = "tokens of PLaMo 2, a line each", .file = file_name, .add = add};
