/* Derivations: what is done to a checkpoint after it was read and before anything is made of it. Each is one file here
 * and one row of the table in derive.c; the order of the rows is the order in which they are applied. */
#pragma once

#include "formats/checkpoint.h"
#include "models/derive/merge.h"

struct derive_options {
    struct lora_requests loras; /* adapters to merge */
    const char *base;           /* the model that an adapter or a draft model belongs to: target.h; NULL: none */
};

/* Takes a checkpoint, also on failure, and returns what the derivations make of it: a checkpoint that keeps it, or the
 * same one where there is nothing to do. The error begins with the option whose derivation fails. */
const struct checkpoint *derive(const struct checkpoint *read, const struct derive_options *options,
                                struct error *error);
