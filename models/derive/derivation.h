/* A row of the table of derivations (derive.c). */
#pragma once

#include "formats/checkpoint_builder.h"
#include "models/derive/derive.h"

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
