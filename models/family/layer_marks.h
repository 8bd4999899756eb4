/* Marked layers of a GGUF: layers with a value above 0 in an array, or with a certain tensor. Some classes of
 * transformers list such layers, others have the distance from one to the next. */
#pragma once

#include "formats/gguf/kv.h"
#include "formats/tensor_set.h"

enum { MAX_LISTED_LAYERS = 1 << 16 }; /* a number in a file must not create long arrays */

struct layer_marks {
    uint64_t n;
    bool *marked; /* in the arena */
};

/* Marks layers by the first `n_layers` elements of a number or bool array, or all layers by a single number. Returns
 * false if the key is neither, or `n_layers` exceeds MAX_LISTED_LAYERS. */
bool layer_marks_of_key(const struct gguf_kvs *kvs, const char *key, uint64_t n_layers, struct arena *arena,
                        struct layer_marks *ret_marks);

/* Marks the layers that have a tensor whose name fits `pattern` (models/relation/pattern.h). */
bool layer_marks_of_tensors(const struct tensor_set *set, const char *pattern, uint64_t n_layers, struct arena *arena,
                            struct layer_marks *ret_marks);

/* Finds the period and offset for which layer i is marked if i % *ret_period == *ret_offset; for a single mark, the
 * period is the number of layers. Returns false if no layer is marked, or the marks are not periodic. */
bool layer_marks_period(const struct layer_marks *marks, uint64_t *ret_period, uint64_t *ret_offset);
