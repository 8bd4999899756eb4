/* Recipes of merges: a checkpoint made from several models by a recipe of mergekit (models/recipes/recipe.h), computed
 * when it is read.
 *
 * Models are named relative to the recipe, or to the working directory, or as ORG/NAME in the hub cache, or by a URL;
 * each may be anything that opens, another recipe included, and packed weights and GGUFs are dequantized. Tensors have
 * the bytes that mergekit writes on one thread of a processor with AVX2; docs/merges.md lists the exceptions. Planning
 * reads no weights.
 *
 * Unlike mergekit, wfs takes config.json and the tokenizer from the first model of the recipe if there is no base model
 * (mergekit: from a random one), and gives a frankenmerge the layer_types of its layers. */
#pragma once

#include "quant/blocks/dtype.h"

#include <stdbool.h>
#include <stdint.h>

struct recipe_options {
    bool has_seed;
    uint32_t seed;                  /* for methods that choose at random; its low 32 bits count */
    const struct dtype *lora_dtype; /* of a model while an adapter is merged into it; NULL: that of each weight */
    unsigned depth;                 /* of recipes within recipes */
};
