/* The weights that a merge has, under templates of their names.
 *
 * mergekit knows them by tables of architectures: weights that a table lacks are not in the result, such as the biases
 * of a Llama. Without a table they are the weights that all models have. Source: mergekit, _data/architectures/. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>

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
