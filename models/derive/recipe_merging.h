/* A merge of the models of a recipe (models/derive/recipe.h) while it is made; for the files of the derivation only.
 *
 * Functions that return false have set merge->error. */
#pragma once

#include "formats/checkpoint_builder.h"
#include "models/config/hparams.h"
#include "models/derive/derive.h"
#include "models/huggingface/hf_model.h"
#include "models/recipes/recipe.h"
#include "models/recipes/weights.h"

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
    struct recipe_vocabulary_tokens *vocabulary; /* recipe_vocabulary.h; NULL: all models have one vocabulary */
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
