#include "products/whisper/forms.h"

#include "base/encodings.h"
#include "formats/documents.h"
#include "models/tokenizers/byte_alphabet.h"

#include <stdlib.h>
#include <string.h>

static const char vocab_json[] = "vocab.json";

enum { MAX_TOKENS = 1 << 22 };

struct spelled_token {
    const struct json_member member;
    int64_t id;
};

static int by_id(const void *a, const void *b)
{
    int64_t one = ((const struct spelled_token *)a)->id, other = ((const struct spelled_token *)b)->id;
    return (one > other) - (one < other);
}

/* Appends the bytes that a token's characters stand for. */
static bool append_spelled(struct buffer *tokens, const struct json_member *member, struct error *error)
{
    size_t n_bytes = 0;
    unsigned char *bytes = memory_alloc(member->key_length + 1);
    bool good = byte_characters_decode(member->key, member->key_length, bytes, &n_bytes);
    if (good)
        gguf_append_string(tokens, (const char *)bytes, n_bytes);
    else
        error_set(error, "%s: token '%.100s' has a character that stands for no byte", vocab_json, member->key);
    free(bytes);
    return good;
}

static bool read_spelled(const struct json *vocab, struct spelled_token *out, size_t *ret_n, struct error *error)
{
    size_t n = 0;
    for (struct json_member member = {0}; json_next_member(vocab, &member);) {
        int64_t id;
        if (!json_i64(member.value, &id))
            return error_set(error, "%s: token '%.100s' has no whole number", vocab_json, member.key);
        memcpy(&out[n++], &(struct spelled_token){member, id}, sizeof *out);
    }
    *ret_n = n;
    return true;
}

/* Sets the tokens of vocab.json. */
static bool take_vocab(const struct json *vocab, bool sorts, const char *left_out, struct gguf_kvs *metadata,
                       struct error *error)
{
    size_t n = 0;
    uint64_t n_tokens = 0;
    struct buffer tokens = {0};
    struct spelled_token *spelled = memory_alloc((json_count_members(vocab) + 1) * sizeof *spelled);
    bool good = read_spelled(vocab, spelled, &n, error);
    if (good && sorts)
        qsort(spelled, n, sizeof *spelled, by_id);
    for (size_t i = 0; good && i < n; i++) {
        if (left_out != NULL && strcmp(spelled[i].member.key, left_out) == 0)
            continue;
        good = append_spelled(&tokens, &spelled[i].member, error);
        n_tokens++;
    }
    free(spelled);
    if (good && n_tokens == 0)
        good = error_set(error, "%s: has no tokens", vocab_json);
    gguf_set_array(metadata, "tokens", GGUF_STRING, n_tokens, &tokens);
    return good;
}

/* Opens vocab.json and sets its tokens; *ret_absent: there is none. */
static bool take_vocab_file(const struct checkpoint *checkpoint, bool sorts, const char *left_out,
                            struct gguf_kvs *metadata, bool *ret_absent, struct error *error)
{
    struct document *document;
    *ret_absent = false;
    if (!document_open(checkpoint, vocab_json, &document, error))
        return false;
    *ret_absent = document == NULL;
    bool good = document != NULL && take_vocab(document_root(document), sorts, left_out, metadata, error);
    document_close(document);
    return good;
}

bool whisper_tokens_by_id(const struct checkpoint *checkpoint, struct gguf_kvs *metadata, struct error *error)
{
    bool absent;
    bool good = take_vocab_file(checkpoint, true, NULL, metadata, &absent, error);
    return absent ? error_set(error, "%s is missing", vocab_json) : good;
}

/* Appends the token of a line: "base64 rank". The rank does not count. */
static bool append_line(struct buffer *tokens, const char *line, size_t length)
{
    static const char no_bytes[] = "="; /* how OpenAI's file spells its last token */
    size_t n_bytes = 0, n_digits = 0;
    while (n_digits < length && line[n_digits] != ' ')
        n_digits++;
    if (n_digits == 0 || n_digits == length)
        return false;
    struct arena *arena = arena_new();
    bool is_empty = n_digits == strlen(no_bytes) && *line == *no_bytes;
    const char *bytes = is_empty ? "" : base64_decode(arena, line, n_digits, &n_bytes);
    if (bytes != NULL)
        gguf_append_string(tokens, bytes, n_bytes);
    arena_free(arena);
    return bytes != NULL;
}

static bool take_lines(const char *name, const char *text, size_t length, struct gguf_kvs *metadata,
                       struct error *error)
{
    struct buffer tokens = {0};
    uint64_t n_tokens = 0, n_lines = 0;
    bool good = true;
    for (size_t at = 0; good && at < length; n_lines++) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t line = end != NULL ? (size_t)(end - text) - at : length - at;
        if (line != 0) {
            good = append_line(&tokens, text + at, line) ||
                   error_set(error, "%s: line %llu is not a token in base64 and its rank", name,
                             (unsigned long long)n_lines + 1);
            n_tokens++;
        }
        good = good && (n_tokens <= MAX_TOKENS || error_set(error, "%s: more than %d tokens", name, MAX_TOKENS));
        at += line + 1;
    }
    if (good && n_tokens == 0)
        good = error_set(error, "%s: has no tokens", name);
    gguf_set_array(metadata, "tokens", GGUF_STRING, n_tokens, &tokens);
    return good;
}

bool whisper_tokens_of_openai(const struct checkpoint *checkpoint, const char *name, struct gguf_kvs *metadata,
                              struct error *error)
{
    size_t length;
    bool absent;
    char *text = document_text(checkpoint, name, &length, &absent, error);
    if (text == NULL && !absent)
        return false;
    if (text != NULL) {
        bool good = take_lines(name, text, length, metadata, error);
        free(text);
        return good;
    }
    bool good = take_vocab_file(checkpoint, false, "<|endoftext|>", metadata, &absent, error);
    return absent ? error_set(error, "its tokens are in %s, which is missing: -o whisper=DIR names the directory", name)
                  : good;
}
