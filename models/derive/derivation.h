/* A row of the table of derivations (derive.c). */
#pragma once

#include "formats/checkpoint_builder.h"
#include "models/derive/derive.h"

struct derivation {
    const char *option; /* the option that asks for it; NULL: it applies to every model */

    /* Derives a checkpoint from `from` by checkpoint_derive(), which takes `from`; leaves *ret_derived NULL, and `from`
     * to the caller, where there is nothing to do. May fail before and after it has set *ret_derived. */
    bool (*apply)(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error);
};

extern const struct derivation untie_derivation, plain_derivation, merge_derivation, dense_derivation,
    target_derivation;
