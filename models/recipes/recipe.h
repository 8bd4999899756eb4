/* Recipes of merges: the YAML of mergekit, read strictly.
 *
 * recipe_read() parses a text. The result names models, slices of their layers and parameters, and opens nothing:
 * models/derive/recipe.c makes a checkpoint of it. mergekit ignores unknown keys and parameters, and finds out late
 * that a method lacks its base model or a weight: here all of that is an error that names the line, with the nearest
 * known word. Every size in a recipe is bounded: aliases make a small text large.
 *
 * Everything lives in the arena of the read. Source: mergekit, config.py, plan.py and merge_methods/. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "models/recipes/methods.h"

#include <stdbool.h>
#include <stddef.h>

enum { RECIPE_MAX_TEXT = 1 << 20, RECIPE_MAX_SOURCES = 256, RECIPE_MAX_SLICES = 4096, RECIPE_MAX_LAYERS = 65536 };

/* The place of a model in struct recipe; NO_MODEL: none. */
enum { NO_MODEL = -1 };

/* A model that a recipe names, once for each spelling. */
struct recipe_model {
    const char *text; /* as the recipe writes it, for messages and equality: "ORG/NAME@REVISION+LORA" */
    const char *path; /* of the model, with its "@REVISION" */
    const char *lora; /* the same of the adapter that is merged into the model; NULL: none */
};

/* One input of a slice. */
struct recipe_source {
    int model;
    bool has_range; /* else all layers of the model */
    uint64_t first_layer, end_layer;
    struct settings parameters;
};

/* Output layers, one after the other, each made from one layer of every source. */
struct recipe_slice {
    const struct recipe_source *sources;
    size_t n_sources;
    int base; /* the recipe's, if the slice names none */
    struct settings parameters;
};

/* Where the vocabulary of the result comes from. */
enum recipe_vocabulary {
    VOCABULARY_COPIED, /* all models have that of the base model */
    VOCABULARY_UNION,
    VOCABULARY_OF_BASE,
    VOCABULARY_OF_MODEL,
};

/* A token whose row of the embedding the recipe chooses. */
struct recipe_token {
    const char *text;
    enum { TOKEN_DEFAULT, TOKEN_OF_MODEL, TOKEN_ZERO } kind;
    int model;         /* for TOKEN_OF_MODEL */
    const char *other; /* that model's token; NULL: other_id, or the same text if that is -1 */
    int64_t other_id;
    bool force; /* also for models that have the token */
};

struct recipe {
    const struct method *method;
    const struct recipe_model *models;
    size_t n_models;
    int base;
    const struct recipe_slice *slices; /* one, of all layers, for a recipe with `models` */
    size_t n_slices;
    struct recipe_slice after_layers;   /* for the weights after the layers: the last slice, with as many of its sources
                                           as the first slice has, since mergekit takes no more */
    bool has_slices;                    /* the recipe says `slices`: layers are numbered anew */
    struct settings module, parameters; /* of the one module, and of the recipe */
    const struct dtype *dtype, *out_dtype; /* NULL: that of the inputs, and that of the computation */

    enum recipe_vocabulary vocabulary;
    int vocabulary_model;
    const struct recipe_token *tokens;
    size_t n_tokens;
    uint64_t pad_to_multiple_of; /* 0: no padding */
    const char *chat_template;   /* NULL: the base model's */
};

/* Reports whether a text may be a recipe, without parsing it: a line of it begins with "merge_method:", or with a key
 * of mergekit-moe, whose recipes are refused by name. */
bool recipe_is_likely(const char *text, size_t length);

/* Returns NULL if the text is not a valid recipe, or asks for something that wfs does not do. The error begins with the
 * line. */
const struct recipe *recipe_read(struct arena *arena, const char *text, size_t length, struct error *error);

/* Returns the value of a parameter that each input has, of that source, for the input's tensor, or of one that all
 * inputs share, for the output's. `at` is 0 in the first layer of the slice, and 1 in the last one. The scopes are the
 * source, the slice, the module and the recipe; then the method's default. Returns false if none has a value. */
bool recipe_input_value(const struct recipe *recipe, const struct recipe_slice *slice,
                        const struct recipe_source *source, enum parameter_name name, const char *tensor, double at,
                        double *ret_value);
bool recipe_shared_value(const struct recipe *recipe, const struct recipe_slice *slice, enum parameter_name name,
                         const char *tensor, double at, double *ret_value);

/* The weights that a merge has, under templates of their names.
 *
 * mergekit knows them by tables of architectures: weights that a table lacks are not in the result, such as the biases
 * of a Llama. Without a table they are the weights that all models have. Source: mergekit, _data/architectures/. */

struct weight_template {
    const char *before, *after; /* around the number of the layer; `after` is NULL for a weight outside the layers */
    bool is_optional;           /* left out where no model has it */
    bool is_last;               /* outside the layers, but of the last slice: a norm or the output */
    const char *tied;           /* the weight that models without this one use in its place; NULL: none */
    bool has_vocabulary;        /* its rows are tokens */
};

struct weight_templates {
    const struct weight_template *items;
    size_t count;
};

/* Returns the table of a class ("LlamaForCausalLM"), in the arena; false if there is none. */
bool weights_of_class(const char *class_name, struct arena *arena, struct weight_templates *ret_weights);

/* Fills in the traits of a weight outside the layers by its name, for classes without a table. */
struct weight_template weight_outside_layers(const char *name);
