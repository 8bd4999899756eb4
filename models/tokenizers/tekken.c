/* "gpt2" from tekken.json, Mistral's tokenizer. gguf-py vocab.py, MistralVocab.
 *
 * The list begins with the special tokens, followed by the declared number of others. Every way to cut a token into two
 * tokens is a merge, not only the one that training chose. */
#include "base/encodings.h"
#include "base/text_index.h"
#include "models/tokenizers/byte_alphabet.h"
#include "models/tokenizers/mistral_tokens.h"
#include "models/tokenizers/token_list.h"
#include "models/tokenizers/tokenizer_files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 1 << 22, MAX_TOKEN_BYTES = 1024, N_BYTES = 256 };

struct text {
    const char *bytes;
    size_t length;
};

struct tekken {
    struct arena *arena;
    struct document *document;
    uint64_t n_special, n_ranks;
    struct text *special; /* by number; NULL: unused */
    struct text *ranks;
    struct text_index index; /* of ranks */
};

static bool read_count(const struct json *config, const char *key, uint64_t *ret_count, struct error *error)
{
    return (json_u64(json_get(config, key), ret_count) && *ret_count <= MAX_TOKENS) ||
           error_set(error, "tekken.json: %s is missing or above %d", key, MAX_TOKENS);
}

static bool read_special(struct tekken *tekken, const struct json *tokens, struct error *error)
{
    for (const struct json *token = json_first(tokens); token != NULL; token = json_next(token)) {
        uint64_t number;
        struct text text;
        text.bytes = json_string(json_get(token, "token_str"), &text.length);
        if (text.bytes == NULL || !json_u64(json_get(token, "rank"), &number) || number >= tekken->n_special)
            return error_set(error, "tekken.json: a special token has no text, or its rank is not below %" PRIu64,
                             tekken->n_special);
        tekken->special[number] = text;
    }
    return true;
}

/* Sets the special tokens for files that list none; all versions after 7 list them. */
static void set_older_special(struct tekken *tekken)
{
    static const char *const tokens[] = {"<unk>",
                                         "<s>",
                                         "</s>",
                                         "[INST]",
                                         "[/INST]",
                                         "[AVAILABLE_TOOLS]",
                                         "[/AVAILABLE_TOOLS]",
                                         "[TOOL_RESULTS]",
                                         "[/TOOL_RESULTS]",
                                         "[TOOL_CALLS]",
                                         "[IMG]",
                                         "<pad>",
                                         "[IMG_BREAK]",
                                         "[IMG_END]",
                                         "[PREFIX]",
                                         "[MIDDLE]",
                                         "[SUFFIX]",
                                         "[SYSTEM_PROMPT]",
                                         "[/SYSTEM_PROMPT]",
                                         "[TOOL_CONTENT]"};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens && i < tekken->n_special; i++)
        tekken->special[i] = (struct text){tokens[i], strlen(tokens[i])};
}

static bool decode(struct arena *arena, const struct json *token, struct text *ret_text)
{
    size_t length;
    const char *digits = json_string(json_get(token, "token_bytes"), &length);
    if (digits == NULL || length / 4 * 3 > MAX_TOKEN_BYTES)
        return false;
    ret_text->bytes = base64_decode(arena, digits, length, &ret_text->length);
    return ret_text->bytes != NULL;
}

static bool read_ranks(struct tekken *tekken, const struct json *vocabulary, struct error *error)
{
    uint64_t rank = 0;
    for (const struct json *token = json_first(vocabulary); token != NULL && rank < tekken->n_ranks;
         token = json_next(token), rank++) {
        uint64_t number;
        struct text *text = &tekken->ranks[rank];
        if (!decode(tekken->arena, token, text) || !json_u64(json_get(token, "rank"), &number) || number != rank)
            return error_set(error,
                             "tekken.json: token %" PRIu64 " of vocab is out of place, or not 1 to %d bytes long", rank,
                             MAX_TOKEN_BYTES);
        text_index_add(&tekken->index, text->bytes, text->length, rank);
    }
    return rank == tekken->n_ranks ||
           error_set(error, "tekken.json: vocab has %" PRIu64 " tokens, fewer than %" PRIu64, rank, tekken->n_ranks);
}

static bool read_tekken(struct tekken *tekken, struct error *error)
{
    const struct json *root = document_root(tekken->document), *config = json_get(root, "config");
    uint64_t n_tokens;
    if (!read_count(config, "default_num_special_tokens", &tekken->n_special, error) ||
        !read_count(config, "default_vocab_size", &n_tokens, error))
        return false;
    if (n_tokens < tekken->n_special || n_tokens - tekken->n_special > json_count(json_get(root, "vocab")))
        return error_set(error,
                         "tekken.json: default_vocab_size is %" PRIu64 ", but the file has %" PRIu64
                         " special and %zu other tokens",
                         n_tokens, tekken->n_special, json_count(json_get(root, "vocab")));
    if (tekken->n_special > 2 * json_count(json_get(root, "special_tokens")) + N_BYTES + MAX_TOKEN_BYTES)
        return error_set(error, "tekken.json: %" PRIu64 " special tokens are declared, but %zu are listed",
                         tekken->n_special, json_count(json_get(root, "special_tokens")));
    tekken->n_ranks = n_tokens - tekken->n_special;
    tekken->special = arena_array(tekken->arena, tekken->n_special + 1, sizeof *tekken->special);
    tekken->ranks = arena_array(tekken->arena, tekken->n_ranks + 1, sizeof *tekken->ranks);
    memset(tekken->special, 0, (tekken->n_special + 1) * sizeof *tekken->special);
    const struct json *special = json_get(root, "special_tokens");
    if (special == NULL || json_is(special, JSON_NULL))
        set_older_special(tekken);
    return read_special(tekken, special, error) && read_ranks(tekken, json_get(root, "vocab"), error);
}

/* A way to cut a token into two. */
struct cut {
    size_t left, right; /* ranks */
};

static int compare_cuts(const void *a, const void *b)
{
    const struct cut *x = a, *y = b;
    if (x->left != y->left)
        return x->left < y->left ? -1 : 1;
    return (x->right > y->right) - (x->right < y->right);
}

static void spell(struct buffer *out, const struct text *text)
{
    for (size_t i = 0; i < text->length; i++) {
        char character[BYTE_CHARACTER_BYTES];
        buffer_append(out, character, byte_character((unsigned char)text->bytes[i], character));
    }
}

static void write_merges(struct gguf_kvs *kvs, const struct tekken *tekken)
{
    struct buffer elements = {0}, merge = {0};
    uint64_t count = 0;
    for (uint64_t rank = N_BYTES; rank < tekken->n_ranks; rank++) {
        const struct text *text = &tekken->ranks[rank];
        struct cut cuts[MAX_TOKEN_BYTES];
        size_t n_cuts = 0;
        for (size_t at = 1; at < text->length; at++)
            if (text_index_find(&tekken->index, text->bytes, at, &cuts[n_cuts].left) &&
                text_index_find(&tekken->index, text->bytes + at, text->length - at, &cuts[n_cuts].right))
                n_cuts++;
        qsort(cuts, n_cuts, sizeof *cuts, compare_cuts);
        for (size_t i = 0; i < n_cuts; i++, count++) {
            merge.length = 0;
            spell(&merge, &tekken->ranks[cuts[i].left]);
            buffer_append(&merge, " ", 1);
            spell(&merge, &tekken->ranks[cuts[i].right]);
            gguf_append_string(&elements, (const char *)merge.bytes, merge.length);
        }
    }
    buffer_free(&merge);
    gguf_set_array(kvs, "tokenizer.ggml.merges", GGUF_STRING, count, &elements);
}

/* Returns the number of a special token; MISTRAL_NO_ID: none. */
static uint64_t special_id(const struct tekken *tekken, const char *text)
{
    for (uint64_t i = 0; i < tekken->n_special; i++)
        if (tekken->special[i].bytes != NULL && tekken->special[i].length == strlen(text) &&
            memcmp(tekken->special[i].bytes, text, strlen(text)) == 0)
            return i;
    return MISTRAL_NO_ID;
}

static bool write_ids(struct gguf_kvs *kvs, const struct tekken *tekken, struct error *error)
{
    const struct mistral_ids ids = {
        .begin = special_id(tekken, "<s>"),
        .end = special_id(tekken, "</s>"),
        .unknown = special_id(tekken, "<unk>"),
        .padding = special_id(tekken, "<pad>"),
    };
    return mistral_write_ids(kvs, &ids, "tekken.json", error);
}

static void write_tokens(struct gguf_kvs *kvs, const struct tekken *tekken)
{
    struct buffer texts = {0}, scores = {0}, types = {0}, spelled = {0};
    uint64_t n_tokens = tekken->n_special + tekken->n_ranks;
    for (uint64_t i = 0; i < n_tokens; i++) {
        bool is_special = i < tekken->n_special;
        spelled.length = 0;
        if (!is_special)
            spell(&spelled, &tekken->ranks[i - tekken->n_special]);
        else if (tekken->special[i].bytes != NULL)
            buffer_append(&spelled, tekken->special[i].bytes, tekken->special[i].length);
        else
            buffer_printf(&spelled, "<SPECIAL_%" PRIu64 ">", i);
        gguf_append_string(&texts, (const char *)spelled.bytes, spelled.length);
        buffer_append_le(&scores, 0, 4);
        buffer_append_le(&types, is_special ? TOKEN_CONTROL : TOKEN_NORMAL, 4);
    }
    buffer_free(&spelled);
    gguf_set_array(kvs, "tokenizer.ggml.tokens", GGUF_STRING, n_tokens, &texts);
    /* I32, as the converter writes them */
    gguf_set_array(kvs, "tokenizer.ggml.scores", GGUF_I32, n_tokens, &scores);
    gguf_set_array(kvs, "tokenizer.ggml.token_type", GGUF_I32, n_tokens, &types);
}

/* Returns llama.cpp's name for the chat template; NULL: none. */
static const char *template_name(const struct json *version)
{
    if (json_string_is(version, "v3"))
        return "mistral-v3-tekken";
    return json_string_is(version, "v7") ? "mistral-v7-tekken" : NULL;
}

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct tekken *tekken,
                       struct error *error)
{
    const struct json *version = json_get(json_get(document_root(tekken->document), "config"), "version");
    const char *text = json_string(version, NULL);
    gguf_set_text(kvs, "tokenizer.ggml.model", "gpt2");
    gguf_set_text(kvs, "tokenizer.ggml.pre", "tekken");
    write_merges(kvs, tekken);
    if (!write_ids(kvs, tekken, error))
        return false;
    write_tokens(kvs, tekken);
    return mistral_write_end(kvs, input, tekken->n_special + tekken->n_ranks, template_name(version), text ? text : "?",
                             error);
}

static enum vocab_result add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    struct tekken tekken = {0};
    if (!document_open(input->checkpoint, "tekken.json", &tekken.document, error))
        return VOCAB_FAILED;
    if (tekken.document == NULL)
        return VOCAB_ABSENT;
    if (strcmp(input->checkpoint->format, "mistral") != 0)
        checkpoint_note(input->checkpoint, SUBJECT_GGUF,
                        "the converter fails if tekken.json is the only tokenizer; wfs writes it as for a model in "
                        "Mistral's own format");
    tekken.arena = arena_new();
    bool added = read_tekken(&tekken, error) && write_keys(kvs, input, &tekken, error);
    text_index_free(&tekken.index);
    arena_free(tekken.arena);
    document_close(tekken.document);
    return added ? VOCAB_ADDED : VOCAB_FAILED;
}

const struct vocab tekken_vocab = {.name = "tekken", .file = "tekken.json", .add = add};
