/* "gpt2" of vocabularies that are ranks of tokens (tiktoken.h). Special tokens come after the ranks; of two with one
 * text the later has it, and before a token of the ranks they have it, whose id stays unused. */
#pragma once

#include "models/tokenizers/tiktoken.h"
#include "models/tokenizers/token_list.h"
#include "models/tokenizers/tokenizer_files.h"

/* One kind of ranked vocabulary. */
struct ranked_kind {
    const char *file; /* "tiktoken.model" */
    enum tiktoken_ranks ranks;
    const char *pre; /* the tokenizer is code that is not run: its hash is not asked for */

    uint64_t n_specials; /* special tokens after the ranks; 0: all up to vocab_size */

    /* The texts of the first special tokens, up to a NULL; others are called "<|extra_0|>" and so on. */
    const char *const *specials;

    /* Sets the special tokens instead. */
    void (*set_specials)(struct token_list *list, uint64_t first, uint64_t count, const struct tokenizer_files *files);

    /* The token that ends a text unless tokenizer_config.json has an eos_token; NULL: config.json names it. */
    const char *end;

    /* Ids after those that the files give, at most SPECIAL_IDS; `first` is that of the first special token. NULL: none
     */
    size_t (*list_ids)(const struct vocab_input *input, const struct tokenizer_files *files, uint64_t first,
                       struct special_id *ret_ids);
};

/* Writes the keys of these kinds, for vocab_add(). */
enum vocab_result ranked_add(struct gguf_kvs *kvs, const struct vocab_input *input, const struct ranked_kind *kind,
                             struct error *error);
