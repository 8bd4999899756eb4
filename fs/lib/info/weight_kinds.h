/* The distribution of a model's weights, by kind of matrix: for `wfs info --quantization --html`.
 *
 * The unit for each matrix is the root mean square of its sample, its standard deviation around 0, since a block's
 * scale absorbs it. What remains is the shape of the distribution, and the distance of its outliers. */
#pragma once

#include "models/convert/model.h"

/* Bins of a quarter of a standard deviation; 0 is the middle of the middle bin, and the outermost bins take all weights
 * beyond them. */
enum { WEIGHT_BINS = 65, WEIGHT_BINS_PER_DEVIATION = 4, KIND_NAME = 64 };

/* A model's further kinds are left out. */
enum { WEIGHT_MOST_KINDS = 64 };

struct weight_kind {
    char name[KIND_NAME];
    size_t n_tensors;
    double shares[WEIGHT_BINS];                /* of the sampled weights; together 1 */
    double least_deviation, largest_deviation; /* of its tensors */
    double largest;                            /* weight, in standard deviations of its tensor */
};

/* Splits a GGUF's tensor name: "blk.3.ffn_down.weight" is "ffn_down" in layer 3. Returns false if the name has no
 * layer: "token_embd.weight" is "token_embd". Cuts kinds that are too long. */
bool tensor_kind(const char *name, char kind[KIND_NAME], uint64_t *ret_layer);

/* Samples every matrix. The kinds are in the order of the file, without those of zeros; the caller frees them. */
bool weights_measure(const struct gguf_model *model, struct weight_kind **ret_kinds, size_t *ret_n_kinds,
                     struct error *error);
