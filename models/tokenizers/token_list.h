/* The list of tokens of a GGUF while it is put together: a text, a score and a type for every id. */
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
    struct arena *arena; /* holds texts that are made, and the list */
    struct token *tokens;
    uint64_t n_tokens;
};

enum {
    TOKEN_LIST_MAX = 16 << 20,
    TOKEN_LIST_PADDING = 16, /* the largest multiple that families round a list up to */
};

/* Fails where there would be more tokens than both the tokenizer gives and the token embedding has rows, rounded up;
 * without an embedding, more than twice as many as it gives: the rest is made, and a number in a file is not a reason
 * to make millions. */
bool token_count_fits(const struct vocab_input *input, uint64_t n_tokens, uint64_t n_given, struct error *error);

/* `n_tokens` tokens "[PADn]", unused, of the given score. Fails above TOKEN_LIST_MAX. */
bool token_list_init(struct token_list *list, uint64_t n_tokens, float score, struct error *error);
void token_list_free(struct token_list *list);

/* Sets one token; ids that are not in the list are passed over. */
void token_list_set(struct token_list *list, uint64_t id, const char *text, size_t length, float score,
                    enum token_type type);

/* Writes tokenizer.ggml.model and .pre (unless they are NULL), .tokens, .scores (if wanted) and .token_type. */
void token_list_write(const struct token_list *list, const char *model, const char *pre, bool with_scores,
                      struct gguf_kvs *kvs);

/* Reports whether the text looks like a control token whatever its file says: "<|im_start|>", "<pad>", "<unused12>" ...
 */
bool token_looks_special(const char *text, size_t length);

/* `text` with every U+2581 replaced by a space, in the list's arena; *length is updated. */
const char *token_plain_spaces(struct token_list *list, const char *text, size_t *length);
