/* Mistral's tokenizers: tekken.json, and tokenizer.model.v3 and similar names. */
#include "base/encodings.h"
#include "base/text.h"
#include "base/text_index.h"
#include "formats/documents.h"
#include "models/tokenizers/byte_alphabet.h"
#include "models/tokenizers/sentencepiece.h"
#include "models/tokenizers/token_list.h"
#include "models/tokenizers/tokenizer_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MISTRAL_NO_ID UINT64_MAX
struct mistral_ids {
    uint64_t begin, end, unknown, padding;
};

/* Writes the ids of the special tokens, each below 2^32. Padding may be MISTRAL_NO_ID: then it is the end token. If
 * another id is missing, fails with an error that names `file`. */
static bool mistral_write_ids(struct gguf_kvs *kvs, const struct mistral_ids *ids, const char *file,
                              struct error *error)
{
    const struct {
        const char *key, *what;
        uint64_t id;
    } rows[] = {
        {"tokenizer.ggml.bos_token_id", "BOS", ids->begin},
        {"tokenizer.ggml.eos_token_id", "EOS", ids->end},
        {"tokenizer.ggml.unknown_token_id", "unknown", ids->unknown},
        {"tokenizer.ggml.padding_token_id", "padding", ids->padding != MISTRAL_NO_ID ? ids->padding : ids->end},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].id == MISTRAL_NO_ID)
            return error_set(error, "%s has no %s token", file, rows[i].what);
        gguf_set_u32(kvs, rows[i].key, (uint32_t)rows[i].id);
    }
    return true;
}

/* Writes the keys after the list of tokens: its length, BOS but no EOS around texts, and the chat template:
 * chat_template.jinja, else `name`, a template that llama.cpp knows, may be NULL. Without either, adds a note with the
 * tokenizer's version. Fails if chat_template.jinja cannot be read. */
static bool mistral_write_end(struct gguf_kvs *kvs, const struct vocab_input *input, uint64_t n_tokens,
                              const char *name, const char *version, struct error *error)
{
    char key[128];
    size_t length;
    bool absent;
    char *text = document_text(input->checkpoint, "chat_template.jinja", &length, &absent, error);
    if (text == NULL && !absent)
        return false;
    snprintf(key, sizeof key, "%s.vocab_size", input->architecture);
    gguf_set_u32(kvs, key, (uint32_t)n_tokens);
    gguf_set_bool(kvs, "tokenizer.ggml.add_bos_token", true);
    gguf_set_bool(kvs, "tokenizer.ggml.add_eos_token", false);
    if (text != NULL)
        gguf_set_string(kvs, "tokenizer.chat_template", text, length);
    else if (name != NULL)
        gguf_set_text(kvs, "tokenizer.chat_template", name);
    else
        checkpoint_note(
            input->checkpoint, SUBJECT_GGUF,
            "no chat template: chat_template.jinja is missing, and wfs does not have the converter's template for "
            "tokenizers of version %.16s; -o chat-template=FILE adds a template",
            version);
    free(text);
    return true;
}

/* "llama" from the SentencePiece model of Mistral's own format: tokenizer.model, tokenizer.model.v3,
 * tokenizer.model.v7m1 ... gguf-py vocab.py, MistralVocab; mistral_common's utils.py.
 *
 * Of several files the last by name counts. Its ending is the tokenizer's version, by which llama.cpp knows the chat
 * template. The model's own pieces are all tokens. */

enum { VERSION_DIGITS = 2 };

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* Reads a name's ending, ".model" or ".model.v7m1"; *ret_version is "v7", or "v1". Returns false for other names. */
static bool read_name(const char *name, char ret_version[VERSION_DIGITS + 2])
{
    static const char ending[] = ".model";
    const char *at = strchr(name, '.');
    if (at == NULL || strchr(name, '/') != NULL || !text_starts_with(at, ending))
        return false;
    at += strlen(ending);
    memcpy(ret_version, "v1", sizeof "v1");
    if (*at == '\0')
        return true;
    size_t n_digits = at[0] == '.' && at[1] == 'v' ? count_digits(at + 2) : 0;
    if (n_digits == 0 || n_digits > VERSION_DIGITS)
        return false;
    memcpy(ret_version, at + 1, 1 + n_digits);
    ret_version[1 + n_digits] = '\0';
    at += 2 + n_digits;
    return *at == '\0' || (*at == 'm' && count_digits(at + 1) > 0 && at[1 + count_digits(at + 1)] == '\0');
}

static const char *find_name(const struct checkpoint *checkpoint, char ret_version[VERSION_DIGITS + 2])
{
    const char *found = NULL;
    char version[VERSION_DIGITS + 2];
    for (size_t i = 0; i < checkpoint->n_side_files; i++)
        if (read_name(checkpoint->side_files[i].name, version)) {
            found = checkpoint->side_files[i].name;
            memcpy(ret_version, version, sizeof version);
        }
    return found;
}

static bool mistral_tokens_write_ids(struct gguf_kvs *kvs, const sentencepiece_model *model, const char *name,
                                     struct error *error)
{
    const struct mistral_ids ids = {
        .begin = sentencepiece_id(model, SENTENCEPIECE_BEGIN),
        .end = sentencepiece_id(model, SENTENCEPIECE_END),
        .unknown = sentencepiece_id(model, SENTENCEPIECE_UNKNOWN),
        .padding = sentencepiece_id(model, SENTENCEPIECE_PADDING),
    };
    return mistral_write_ids(kvs, &ids, name, error);
}

static const char *mistral_tokens_template_name(const char *version)
{
    static const char *const known[][2] = {{"v1", "mistral-v1"}, {"v3", "mistral-v3"}, {"v7", "mistral-v7"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i][0], version) == 0)
            return known[i][1];
    return NULL;
}

static bool mistral_tokens_write_keys(struct gguf_kvs *kvs, const struct vocab_input *input,
                                      const sentencepiece_model *model, const char *name, const char *version,
                                      struct error *error)
{
    struct token_list list;
    if (!sentencepiece_list(input, model, model->n_pieces, &list, error))
        return false;
    gguf_set_text(kvs, "tokenizer.ggml.model", "llama");
    bool written = mistral_tokens_write_ids(kvs, model, name, error);
    if (written) {
        token_list_write(&list, NULL, NULL, true, kvs);
        written = mistral_write_end(kvs, input, list.n_tokens, mistral_tokens_template_name(version), version, error);
    }
    token_list_free(&list);
    return written;
}

static enum vocab_result mistral_tokens_add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    sentencepiece_model *model;
    char version[VERSION_DIGITS + 2];
    const char *name = find_name(input->checkpoint, version);
    if (name == NULL)
        return VOCAB_ABSENT;
    enum vocab_result result = sentencepiece_load(input->checkpoint, name, &model, error);
    if (result != VOCAB_ADDED)
        return result;
    if (!mistral_tokens_write_keys(kvs, input, model, name, version, error))
        result = VOCAB_FAILED;
    sentencepiece_free(model);
    return result;
}

const struct vocab mistral_spm_vocab = {
    .name = "Mistral's SentencePiece", .file = "tokenizer.model.vN", .add = mistral_tokens_add};

/* "gpt2" from tekken.json, Mistral's tokenizer. gguf-py vocab.py, MistralVocab.
 *
 * The list begins with the special tokens, followed by the declared number of others. Every way to cut a token into two
 * tokens is a merge, not only the one that training chose. */

enum { MAX_TOKENS = 1 << 22, MAX_TOKEN_BYTES = 1024, N_BYTES = 256 };

struct tekken_text {
    const char *bytes;
    size_t length;
};

struct tekken {
    struct arena *arena;
    struct document *document;
    uint64_t n_special, n_ranks;
    struct tekken_text *special; /* by number; NULL: unused */
    struct tekken_text *ranks;
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
        struct tekken_text tekken_text;
        tekken_text.bytes = json_string(json_get(token, "token_str"), &tekken_text.length);
        if (tekken_text.bytes == NULL || !json_u64(json_get(token, "rank"), &number) || number >= tekken->n_special)
            return error_set(error, "tekken.json: a special token has no text, or its rank is not below %" PRIu64,
                             tekken->n_special);
        tekken->special[number] = tekken_text;
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
        tekken->special[i] = (struct tekken_text){tokens[i], strlen(tokens[i])};
}

static bool decode(struct arena *arena, const struct json *token, struct tekken_text *ret_text)
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
        struct tekken_text *tekken_text = &tekken->ranks[rank];
        if (!decode(tekken->arena, token, tekken_text) || !json_u64(json_get(token, "rank"), &number) || number != rank)
            return error_set(error,
                             "tekken.json: token %" PRIu64 " of vocab is out of place, or not 1 to %d bytes long", rank,
                             MAX_TOKEN_BYTES);
        text_index_add(&tekken->index, tekken_text->bytes, tekken_text->length, rank);
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

static void spell(struct buffer *out, const struct tekken_text *tekken_text)
{
    for (size_t i = 0; i < tekken_text->length; i++) {
        char character[BYTE_CHARACTER_BYTES];
        buffer_append(out, character, byte_character((unsigned char)tekken_text->bytes[i], character));
    }
}

static void write_merges(struct gguf_kvs *kvs, const struct tekken *tekken)
{
    struct buffer elements = {0}, merge = {0};
    uint64_t count = 0;
    for (uint64_t rank = N_BYTES; rank < tekken->n_ranks; rank++) {
        const struct tekken_text *tekken_text = &tekken->ranks[rank];
        struct cut cuts[MAX_TOKEN_BYTES];
        size_t n_cuts = 0;
        for (size_t at = 1; at < tekken_text->length; at++)
            if (text_index_find(&tekken->index, tekken_text->bytes, at, &cuts[n_cuts].left) &&
                text_index_find(&tekken->index, tekken_text->bytes + at, tekken_text->length - at, &cuts[n_cuts].right))
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
static uint64_t special_id(const struct tekken *tekken, const char *tekken_text)
{
    for (uint64_t i = 0; i < tekken->n_special; i++)
        if (tekken->special[i].bytes != NULL && tekken->special[i].length == strlen(tekken_text) &&
            memcmp(tekken->special[i].bytes, tekken_text, strlen(tekken_text)) == 0)
            return i;
    return MISTRAL_NO_ID;
}

static bool tekken_write_ids(struct gguf_kvs *kvs, const struct tekken *tekken, struct error *error)
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
static const char *tekken_template_name(const struct json *version)
{
    if (json_string_is(version, "v3"))
        return "mistral-v3-tekken";
    return json_string_is(version, "v7") ? "mistral-v7-tekken" : NULL;
}

static bool tekken_write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct tekken *tekken,
                              struct error *error)
{
    const struct json *version = json_get(json_get(document_root(tekken->document), "config"), "version");
    const char *tekken_text = json_string(version, NULL);
    gguf_set_text(kvs, "tokenizer.ggml.model", "gpt2");
    gguf_set_text(kvs, "tokenizer.ggml.pre", "tekken");
    write_merges(kvs, tekken);
    if (!tekken_write_ids(kvs, tekken, error))
        return false;
    write_tokens(kvs, tekken);
    return mistral_write_end(kvs, input, tekken->n_special + tekken->n_ranks, tekken_template_name(version),
                             tekken_text ? tekken_text : "?", error);
}

static enum vocab_result tekken_add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
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
    bool added = read_tekken(&tekken, error) && tekken_write_keys(kvs, input, &tekken, error);
    text_index_free(&tekken.index);
    arena_free(tekken.arena);
    document_close(tekken.document);
    return added ? VOCAB_ADDED : VOCAB_FAILED;
}

const struct vocab tekken_vocab = {.name = "tekken", .file = "tekken.json", .add = tekken_add};
