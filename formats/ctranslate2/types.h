/* The types of variables in CTranslate2's model.bin, by number. Source: CTranslate2, include/ctranslate2/types.h. */
#pragma once

#include "quant/blocks/dtype.h"

#include <string.h>

static const char *const ctranslate2_types[] = {"F32", "I8", "I16", "I32", "F16", "BF16"};

enum { CTRANSLATE2_TYPES = sizeof ctranslate2_types / sizeof *ctranslate2_types };

static inline bool ctranslate2_type_of(const struct dtype *dtype, uint64_t *ret_type)
{
    for (*ret_type = 0; *ret_type < CTRANSLATE2_TYPES; ++*ret_type)
        if (strcmp(dtype->name, ctranslate2_types[*ret_type]) == 0)
            return true;
    return false;
}
