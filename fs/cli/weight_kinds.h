/* How the weights of a model are distributed, by kind of matrix: for `wfs info --quantization --html`.
 *
 * Each matrix is looked at in units of its own standard deviation, since that is what a block's scale takes care of:
 * what is left is the shape, and how far its outliers lie from the rest. */
#pragma once

#include "models/convert/model.h"

/* Bins of a quarter of a standard deviation, the middle of the middle one at 0; what lies further out counts in the
 * outermost. */
enum { WEIGHT_BINS = 65, WEIGHT_BINS_PER_DEVIATION = 4, KIND_NAME = 64 };

/* Of a model with more kinds than this, the first ones. */
enum { WEIGHT_MOST_KINDS = 64 };

struct weight_kind {
    char name[KIND_NAME];
    size_t n_tensors;
    double shares[WEIGHT_BINS];                /* of the weights looked at; together 1 */
    double least_deviation, largest_deviation; /* of its tensors */
    double largest;                            /* weight, in standard deviations of its tensor */
};

/* Splits the name of a tensor of a GGUF: "blk.3.ffn_down.weight" is "ffn_down" in layer 3, "token_embd.weight" is
 * "token_embd" in none: false. */
bool tensor_kind(const char *name, char kind[KIND_NAME], uint64_t *ret_layer);

/* Looks at a sample of every matrix. The kinds are in the order of the file, in memory that the caller frees. */
bool weights_measure(const struct gguf_model *model, struct weight_kind **ret_kinds, size_t *ret_n_kinds,
                     struct error *error);
