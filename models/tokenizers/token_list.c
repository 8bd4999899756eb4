#include "models/tokenizers/token_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool token_count_fits(const struct vocab_input *input, uint64_t n_tokens, uint64_t n_given, struct error *error)
{
    uint64_t limit = input->n_rows != 0 ? input->n_rows : 2 * n_given;
    return n_tokens <= n_given || n_tokens < limit + TOKEN_LIST_PADDING ||
           error_set(error,
                     "the vocabulary has %" PRIu64 " tokens, %" PRIu64
                     " of them in the tokenizer: more than the %" PRIu64 " %s",
                     n_tokens, n_given, limit,
                     input->n_rows != 0 ? "rows of the token embedding" : "accepted without an embedding");
}

bool token_list_init(struct token_list *list, uint64_t n_tokens, float score, struct error *error)
{
    if (n_tokens > TOKEN_LIST_MAX)
        return error_set(error, "vocabulary too large: %" PRIu64 " tokens, the limit is %d", n_tokens, TOKEN_LIST_MAX);
    list->arena = arena_new();
    list->n_tokens = n_tokens;
    list->tokens = arena_array(list->arena, n_tokens, sizeof *list->tokens);
    for (uint64_t i = 0; i < n_tokens; i++) /* token_list_write() makes the texts of unused tokens */
        list->tokens[i] = (struct token){.score = score, .type = TOKEN_UNUSED};
    return true;
}

void token_list_free(struct token_list *list)
{
    arena_free(list->arena);
    *list = (struct token_list){0};
}

void token_list_set(struct token_list *list, uint64_t id, const char *text, size_t length, float score,
                    enum token_type type)
{
    if (id < list->n_tokens)
        list->tokens[id] = (struct token){text, length, score, type};
}

enum { PADDING_TEXT = 32 };

/* Returns a token's text: of an unused one, what the converter calls it. */
static const char *text_of(const struct token_list *list, uint64_t id, char padding[PADDING_TEXT], size_t *ret_length)
{
    const struct token *token = &list->tokens[id];
    *ret_length = token->length;
    if (token->text == NULL)
        *ret_length = (size_t)snprintf(padding, PADDING_TEXT, "[PAD%" PRIu64 "]", id);
    return token->text != NULL ? token->text : padding;
}

static void write_texts(const struct token_list *list, struct gguf_kvs *kvs)
{
    char padding[PADDING_TEXT];
    size_t length, n_bytes = 0;
    for (uint64_t i = 0; i < list->n_tokens; i++) {
        text_of(list, i, padding, &length);
        n_bytes += GGUF_LENGTH + length;
    }
    struct buffer *out = gguf_begin_array(kvs, "tokenizer.ggml.tokens", GGUF_STRING, list->n_tokens, n_bytes);
    for (uint64_t i = 0; i < list->n_tokens; i++) {
        const char *text = text_of(list, i, padding, &length);
        gguf_append_string(out, text, length);
    }
}

static void write_scores(const struct token_list *list, struct gguf_kvs *kvs)
{
    struct buffer *out = gguf_begin_array(kvs, "tokenizer.ggml.scores", GGUF_F32, list->n_tokens, 4 * list->n_tokens);
    for (uint64_t i = 0; i < list->n_tokens; i++) {
        uint32_t bits;
        memcpy(&bits, &list->tokens[i].score, sizeof bits);
        buffer_append_le(out, bits, 4);
    }
}

void token_list_write(const struct token_list *list, const char *model, const char *pre, bool with_scores,
                      struct gguf_kvs *kvs)
{
    if (model != NULL)
        gguf_set_text(kvs, "tokenizer.ggml.model", model);
    if (pre != NULL)
        gguf_set_text(kvs, "tokenizer.ggml.pre", pre);
    write_texts(list, kvs);
    if (with_scores)
        write_scores(list, kvs);
    struct buffer *types =
        gguf_begin_array(kvs, "tokenizer.ggml.token_type", GGUF_I32, list->n_tokens, 4 * list->n_tokens);
    for (uint64_t i = 0; i < list->n_tokens; i++)
        buffer_append_le(types, (uint64_t)list->tokens[i].type, 4);
}

static bool starts(const char *text, size_t length, const char *with)
{
    size_t n = strlen(with);
    return length >= n && memcmp(text, with, n) == 0;
}

static bool ends(const char *text, size_t length, const char *with)
{
    size_t n = strlen(with);
    return length >= n && memcmp(text + length - n, with, n) == 0;
}

bool token_looks_special(const char *text, size_t length)
{
    static const char *const known[] = {"<pad>", "<mask>", "<2mass>", "[@BOS@]"};
    static const char *const brackets[][2] = {{"<|", "|>"}, {"<\xef\xbd\x9c", "\xef\xbd\x9c>"}, {"<unused", ">"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (length == strlen(known[i]) && memcmp(text, known[i], length) == 0)
            return true;
    for (size_t i = 0; i < sizeof brackets / sizeof *brackets; i++)
        if (starts(text, length, brackets[i][0]) && ends(text, length, brackets[i][1]))
            return true;
    return false;
}

const char *token_plain_spaces(struct token_list *list, const char *text, size_t *length)
{
    static const char block[] = "\xe2\x96\x81";
    char *plain = arena_alloc(list->arena, *length + 1), *to = plain;
    for (size_t at = 0; at < *length;) {
        if (starts(text + at, *length - at, block)) {
            *to++ = ' ';
            at += sizeof block - 1;
        } else {
            *to++ = text[at++];
        }
    }
    *length = (size_t)(to - plain);
    return plain;
}
