/* Derivations: changes to a checkpoint after it is read and before any output is made from it. Each has one row
 * in derive.c; they are applied in the order of the rows. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/checkpoint_builder.h"
#include "quant/blocks/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/* Adapters merged into a base model: each weight W becomes W + scale (alpha / r) B A, computed in F32 for just the rows
 * that are read, and rounded once to the dtype that the weight has, or had before it was packed. A packed base is
 * dequantized first (models/derive/plain_config.c); for a GGUF see models/derive/merging.h.
 *
 * As in peft's merge_and_unload(), rank_pattern, alpha_pattern and rsLoRA give each weight's scale, embeddings and
 * fan_in_fan_out transpose the product, target_parameters adapt stacked experts, and modules_to_save and other whole
 * tensors replace the base's. If an embedding was trained to stay tied to the output (ensure_weight_tying), its product
 * is added once; peft adds it twice to the one tensor. DoRA gives the sum new norms; those of columns (embeddings,
 * weights stored transposed) are found by the first read of the weight, which reads all of it. Adapters whose training
 * began with a change of the base are refused: their two matrices do not determine the result. Biases of B, and DoRA,
 * are refused for a GGUF. */

struct lora_request {
    const char *path;
    double scale; /* multiplies the adapter's own scale */
};

struct lora_requests {
    const struct lora_request *items;
    size_t count;
};

/* Parses "PATH" or "PATH:SCALE"; the path is made in the arena. */
bool lora_request_parse(const char *text, struct arena *arena, struct lora_request *ret_request, struct error *error);

/* Reports whether there are adapters, and the checkpoint's weights have Hugging Face's names and shapes: not for a
 * GGUF, an adapter, or a source without weights. */
bool lora_adapts(const struct checkpoint *checkpoint, const struct lora_requests *requests);

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

struct recipe_options {
    bool has_seed;
    uint32_t seed;                  /* for methods that choose at random; its low 32 bits count */
    const struct dtype *lora_dtype; /* of a model while an adapter is merged into it; NULL: that of each weight */
    unsigned depth;                 /* of recipes within recipes */
};

struct derive_options {
    struct lora_requests loras; /* adapters to merge */
    struct recipe_options recipe;
    const char *base;         /* path of an adapter's base or a draft model's target (adapter.h); NULL: none */
    const char *architecture; /* the class to treat the checkpoint as (architecture.c); NULL: its own */
    bool dense_modules;       /* open the folders of dense layers that modules.json names (attached.c) */
    const char *whisper;      /* path of the tokens of OpenAI's Whisper models (tokens.c); NULL: none */
};

/* Opens another model, which an option names, in the formats of `like` and with its links. Errors begin with the path,
 * as the user wrote it. Returns NULL on failure. */
const struct checkpoint *derive_open(const char *path, const struct checkpoint *like, struct error *error);

/* Takes ownership of a checkpoint, also on failure, and returns the derived one, which owns it, or the same one if
 * there is nothing to do. Returns NULL on failure; the error begins with the derivation's option, if it has one. */
const struct checkpoint *derive(const struct checkpoint *read, const struct derive_options *options,
                                struct error *error);

/* A row of the table of derivations (derive.c). */

struct derivation {
    const char *option; /* the option that asks for it; NULL: none, it applies to every model that needs it */

    /* Derives a checkpoint from `from` by checkpoint_derive(), which takes `from`. With nothing to do, leaves
     * *ret_derived NULL, and `from` to the caller. May fail before or after it sets *ret_derived. */
    bool (*apply)(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error);
};

extern const struct derivation ctranslate2_derivation, recipe_derivation, architecture_derivation,
    foreign_names_derivation, mlx_names_derivation, ollama_experts_derivation, untie_derivation, plain_derivation,
    merge_derivation, experts_derivation, folder_derivation, shapes_derivation, target_derivation, tokens_derivation;
