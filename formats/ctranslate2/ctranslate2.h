/* Writing CTranslate2's model.bin, as its converters do: the format of read.c in version 6.
 *
 * An artifact's metadata is "specification" and "revision", texts as the reader has them, and then a text for each
 * alias, whose key is its name, and which names a tensor. Tensors and aliases are written in their order, which is that
 * of their names. Fails if a tensor has a type that CTranslate2 lacks, or 4 GiB or more.
 *
 * Source: CTranslate2, python/ctranslate2/specs/model_spec.py, _serialize(). */
#pragma once

#include "formats/artifact.h"
#include "quant/blocks/dtype.h"

#include <string.h>

extern const struct container ctranslate2_container;

/* The types of variables in CTranslate2's model.bin, by number. Source: CTranslate2, include/ctranslate2/types.h. */

static const char *const ctranslate2_types[] = {"F32", "I8", "I16", "I32", "F16", "BF16"};

enum { CTRANSLATE2_TYPES = sizeof ctranslate2_types / sizeof *ctranslate2_types };

static inline bool ctranslate2_type_of(const struct dtype *dtype, uint64_t *ret_type)
{
    for (*ret_type = 0; *ret_type < CTRANSLATE2_TYPES; ++*ret_type)
        if (strcmp(dtype->name, ctranslate2_types[*ret_type]) == 0)
            return true;
    return false;
}
