/* The tokens of one model of a recipe, by text: of tokenizer.json, tokenizer.model or a GGUF's keys. */
#pragma once

#include "base/text_index.h"
#include "formats/checkpoint.h"
#include "models/tokenizers/sentencepiece.h"

struct recipe_token_entry {
    const char *text;
    size_t length;
    uint64_t id;
    const struct json *flags; /* its object in added_tokens; NULL: none */
    bool is_added;            /* not one of the tokenizer's model */
};

struct recipe_tokens {
    struct arena *arena;
    struct recipe_token_entry *items; /* sorted by id */
    size_t count;
    struct text_index index; /* places in items */
    struct tokenizer_files files;
    sentencepiece_model *pieces;
};

/* Reads the tokens of a checkpoint; texts live until recipe_tokens_free(). Fails if it has no tokenizer that wfs knows.
 */
bool recipe_tokens_read(const struct checkpoint *checkpoint, struct recipe_tokens *ret_tokens, struct error *error);
void recipe_tokens_free(struct recipe_tokens *tokens);

/* Returns the token of that text, or NULL. */
const struct recipe_token_entry *recipe_tokens_find(const struct recipe_tokens *tokens, const char *text,
                                                    size_t length);
