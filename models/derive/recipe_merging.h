/* A merge of the models of a recipe (models/derive/derive.h) while it is made; for the files of the derivation only.
 *
 * Functions that return false have set merge->error. */
#pragma once

#include "base/text_index.h"
#include "formats/checkpoint.h"
#include "formats/checkpoint_builder.h"
#include "models/config/hparams.h"
#include "models/derive/derive.h"
#include "models/huggingface/hf_model.h"
#include "models/recipes/recipe.h"
#include "models/tokenizers/sentencepiece.h"

/* A model of the recipe. */
struct recipe_input {
    const struct recipe_model *named;
    const char *repository;              /* ORG/NAME on the hub; NULL: the model is elsewhere */
    const struct checkpoint *checkpoint; /* the merged checkpoint keeps it */
    const struct hf_model *model;        /* its weights unpacked, under Hugging Face's names */
    const char *config;                  /* the text of its config.json */
    size_t config_length;
    struct hparams *hparams;
    const char *class_name; /* "LlamaForCausalLM"; "" if config.json names none */
    uint64_t n_layers;
};

struct recipe_merge {
    const struct recipe *recipe;
    const struct checkpoint *from; /* the recipe's checkpoint */
    struct checkpoint *merged;     /* derived from it */
    const struct derive_options *options;
    struct recipe_input *inputs;      /* by model of the recipe */
    const struct recipe_input *donor; /* of config.json and the tokenizer: the base model, or else the first model */
    struct recipe_vocabulary_tokens *vocabulary; /* recipe_vocabulary.c; NULL: all models have one vocabulary */
    struct error *error;
};

/* Opens all models, unpacks their weights, and reads their config.json. The models become bases of the merged
 * checkpoint. */
bool recipe_open_inputs(struct recipe_merge *merge);
void recipe_close_inputs(struct recipe_merge *merge);

/* Gets the layers that a source takes: layer *ret_first and those after it. */
bool recipe_layers(const struct recipe_merge *merge, const struct recipe_slice *slice,
                   const struct recipe_source *source, uint64_t *ret_first, uint64_t *ret_count);

/* One tensor of the result. */
struct recipe_job {
    const char *name;
    const char *label; /* the greatest name of its inputs, which decides the order of execution */
    const struct recipe_slice *slice;
    double at;                     /* the layer's place in the slice, from 0 to 1; 0 outside the layers */
    const struct tensor **tensors; /* by source of the slice */
    bool is_of_layer, has_vocabulary;
};

struct recipe_jobs {
    struct arena *arena; /* of the jobs and their names */
    struct recipe_job *items;
    size_t count;
    size_t n_left_out; /* tensors of the donor's class that not all models have */
    const char *left_out;
};

/* Finds the tensors of the result, in the order in which mergekit computes them. */
bool recipe_find_jobs(const struct recipe_merge *merge, struct recipe_jobs *jobs);

/* For recipe_find_jobs(): sorts jobs that are in the order in which mergekit plans them, layer by layer, as it computes
 * them. */
void recipe_sort_jobs(const struct recipe_merge *merge, struct recipe_jobs *jobs);

/* Gives the merged checkpoint its tensors. */
bool recipe_make_tensors(struct recipe_merge *merge, const struct recipe_jobs *jobs);

/* Gives the merged checkpoint its config.json, and all other files. */
bool recipe_make_config(struct recipe_merge *merge);
bool recipe_make_files(struct recipe_merge *merge);

/* For recipe_make_files(): add the tokenizer, README.md, and a file of that text. */
bool recipe_add_tokenizer(const struct recipe_merge *merge);
bool recipe_add_card(const struct recipe_merge *merge);
void recipe_add_text(const struct recipe_merge *merge, const char *name, const struct buffer *text);

/* The tokens of one model of a recipe, by text: of tokenizer.json, tokenizer.model or a GGUF's keys. */

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
