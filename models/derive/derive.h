/* Derivations: changes to a checkpoint after it is read and before any output is made from it. Each has one file here
 * and one row in derive.c; they are applied in the order of the rows. */
#pragma once

#include "formats/checkpoint.h"
#include "models/derive/merge.h"
#include "models/derive/recipe.h"

struct derive_options {
    struct lora_requests loras; /* adapters to merge */
    struct recipe_options recipe;
    const char *base;         /* path of an adapter's base or a draft model's target (target.h); NULL: none */
    const char *architecture; /* the class to treat the checkpoint as (architecture.c); NULL: its own */
    bool dense_modules;       /* open the folders of dense layers that modules.json names (folder.c) */
    const char *whisper;      /* path of the tokens of OpenAI's Whisper models (tokens.c); NULL: none */
};

/* Takes ownership of a checkpoint, also on failure, and returns the derived one, which owns it, or the same one if
 * there is nothing to do. Returns NULL on failure; the error begins with the derivation's option, if it has one. */
const struct checkpoint *derive(const struct checkpoint *read, const struct derive_options *options,
                                struct error *error);
