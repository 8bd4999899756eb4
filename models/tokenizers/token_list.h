/* A GGUF's list of tokens while it is being made: a text, a score and a type for every id. The list does not copy the
 * texts. */
#pragma once

#include "base/arena.h"
#include "models/tokenizers/vocab.h"

enum token_type { TOKEN_NORMAL = 1, TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_USER_DEFINED, TOKEN_UNUSED, TOKEN_BYTE };

struct token {
    const char *text;
    size_t length;
    float score;
    enum token_type type;
};

struct token_list {
    struct arena *arena; /* of the list, and of texts made for it */
    struct token *tokens;
    uint64_t n_tokens;
};

enum {
    TOKEN_LIST_MAX = 16 << 20,
    TOKEN_LIST_PADDING = 16, /* the largest multiple that families round a list up to */
};

/* Fails if `n_tokens` exceeds both `n_given`, the tokens that the tokenizer gives, and the rows of the token embedding,
 * rounded up by TOKEN_LIST_PADDING; without an embedding, twice `n_given`. The surplus is padding, and a number in a
 * file must not make wfs create millions of tokens. */
bool token_count_fits(const struct vocab_input *input, uint64_t n_tokens, uint64_t n_given, struct error *error);

/* Makes a list of `n_tokens` unused tokens "[PADn]" with the given score. Fails above TOKEN_LIST_MAX. */
bool token_list_init(struct token_list *list, uint64_t n_tokens, float score, struct error *error);
void token_list_free(struct token_list *list);

/* Sets one token; ignores ids beyond the list. */
void token_list_set(struct token_list *list, uint64_t id, const char *text, size_t length, float score,
                    enum token_type type);

/* Writes tokenizer.ggml.model and .pre (unless NULL), .tokens, .scores (if `with_scores`) and .token_type. */
void token_list_write(const struct token_list *list, const char *model, const char *pre, bool with_scores,
                      struct gguf_kvs *kvs);

/* Reports whether the text looks like a control token: "<|im_start|>", "<pad>", "<unused12>" ... */
bool token_looks_special(const char *text, size_t length);

/* Returns `text` with every U+2581 replaced by a space, in the list's arena; updates *length. */
const char *token_plain_spaces(struct token_list *list, const char *text, size_t *length);
