/* Which layers a GGUF marks: those for which an array has more than 0, or that have a certain tensor. Some classes of
 * transformers have lists of layers, others how far it is from one that is marked to the next. */
#pragma once

#include "formats/gguf/kv.h"
#include "formats/tensor_set.h"

enum { MAX_LISTED_LAYERS = 1 << 16 }; /* a number alone is not a reason to make long arrays */

struct layer_marks {
    uint64_t n;
    bool *marked; /* in the arena */
};

/* Of the first `n_layers` elements of an array of numbers or truth values, or all alike where it is one number. False
 * where the key is neither, or there are more layers than a list may have. */
bool layer_marks_of_key(const struct gguf_kvs *kvs, const char *key, uint64_t n_layers, struct arena *arena,
                        struct layer_marks *ret_marks);

/* By the tensors whose names `pattern` makes (models/relation/pattern.h). */
bool layer_marks_of_tensors(const struct tensor_set *set, const char *pattern, uint64_t n_layers, struct arena *arena,
                            struct layer_marks *ret_marks);

/* The layer i is marked where i % *ret_period == *ret_offset; of one mark alone, the period is the number of layers.
 * False where none is, or they do not come regularly. */
bool layer_marks_period(const struct layer_marks *marks, uint64_t *ret_period, uint64_t *ret_offset);
