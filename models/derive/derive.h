/* Derivations: changes to a checkpoint after it is read and before any output is made from it. Each has one file here
 * and one row in derive.c; they are applied in the order of the rows. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/checkpoint_builder.h"
#include "models/derive/merge.h"
#include "models/derive/recipe.h"

struct derive_options {
    struct lora_requests loras; /* adapters to merge */
    struct recipe_options recipe;
    const char *base;         /* path of an adapter's base or a draft model's target (adapter.h); NULL: none */
    const char *architecture; /* the class to treat the checkpoint as (architecture.c); NULL: its own */
    bool dense_modules;       /* open the folders of dense layers that modules.json names (folder.c) */
    const char *whisper;      /* path of the tokens of OpenAI's Whisper models (tokens.c); NULL: none */
};

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
