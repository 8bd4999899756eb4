/* The tokens of one model of a recipe, by text: of tokenizer.json, tokenizer.model or a GGUF's keys. */
#pragma once

#include "base/text_index.h"
#include "formats/checkpoint.h"
#include "models/derive/recipe_merging.h"
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

/* The vocabulary of a merge, where its recipe asks for one: a union of the models' vocabularies, or that of one of
 * them.
 *
 * Every model's embedding is given a row for each token of the result before the models are merged: its own row of that
 * token, or else, in this order, the row that the recipe configures, that of the only model that has the token, the
 * base's, or the mean of all that have it. Tokens keep the ids of the base model; the others get new ones, model by
 * model in the recipe's order (mergekit: in the order of a set). Source: mergekit, tokenizer/build.py and embed.py. */

/* Finds the tokens of the result and their rows in each model; sets merge->vocabulary, which lives in the arena, unless
 * the recipe copies the base's tokenizer. */
bool recipe_find_vocabulary(struct recipe_merge *merge, struct arena *arena);

/* Returns the number of tokens with padding: the rows of the result's embedding. */
uint64_t recipe_vocabulary_size(const struct recipe_merge *merge);

/* Returns an input's embedding or output with the rows of the result, in `dtype`; NULL: an error. */
const struct view *recipe_vocabulary_view(const struct recipe_merge *merge, const struct recipe_job *job, size_t source,
                                          const struct dtype *dtype);

/* Returns the tokens of the result, with their ids, unsorted. */
const struct recipe_tokens *recipe_result_tokens(const struct recipe_merge *merge);
