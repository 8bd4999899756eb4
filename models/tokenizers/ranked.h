/* "gpt2" for vocabularies that are ranks of tokens (tiktoken.h). Special tokens come after the ranks. Of special tokens
 * with the same text the last one keeps it, and a special token takes the text of an equal rank; the id without text
 * stays unused. */
#pragma once

#include "models/tokenizers/tiktoken.h"
#include "models/tokenizers/token_list.h"
#include "models/tokenizers/tokenizer_files.h"

/* One kind of ranked vocabulary. */
struct ranked_kind {
    const char *file; /* "tiktoken.model" */
    enum tiktoken_ranks ranks;
    const char *pre; /* its pre-tokenizer: a tokenizer that is code is not run, so it has no hash */

    uint64_t n_specials; /* special tokens after the ranks; 0: all up to vocab_size */

    /* Texts of the first special tokens, up to a NULL; the others are "<|extra_0|>" and so on. */
    const char *const *specials;

    /* Sets the special tokens, instead of `specials`. */
    void (*set_specials)(struct token_list *list, uint64_t first, uint64_t count, const struct tokenizer_files *files);

    /* The token that ends a text unless tokenizer_config.json has an eos_token; NULL: config.json names it. */
    const char *end;

    /* Lists ids, at most SPECIAL_IDS, after the files' own; `first` is the first special token's. NULL: none. */
    size_t (*list_ids)(const struct vocab_input *input, const struct tokenizer_files *files, uint64_t first,
                       struct special_id *ret_ids);
};

/* Writes the keys of a ranked vocabulary, for vocab_add(). */
enum vocab_result ranked_add(struct gguf_kvs *kvs, const struct vocab_input *input, const struct ranked_kind *kind,
                             struct error *error);
