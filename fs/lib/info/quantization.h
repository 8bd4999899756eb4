/* The size and error of each quantization of a model, to choose one: `wfs info --quantization`.
 *
 * An error is the difference between a decoded value and the F32 value before encoding. With an importance matrix, the
 * means weight each error by the importance of its column, whether or not the mix uses the matrix. By default, a sample
 * of every tensor is measured: runs of whole blocks, spread evenly over the tensor, the same ones every time. */
#pragma once

#include "fs/tree/tree.h"
#include "models/convert/model.h"
#include "models/quantize/quantize.h"
#include "text/json_write.h"

/* One matrix of a file. */
struct quantized_tensor {
    const char *name;
    const struct dtype *type;
    double relative_error;
};

struct quantization {
    const struct mix *mix;
    bool is_possible;
    struct error reason; /* why the file is not possible */
    uint64_t file_bytes;
    double bits_per_weight; /* of all weights, including those that stay F32 */
    double rmse, largest_error;
    /* root mean square over the matrices of each one's RMS error relative to its RMS weight */
    double relative_error;
    struct quantized_tensor *tensors; /* the matrices, in the order of the file */
    size_t n_tensors;
    struct arena *arena; /* holds the tensors; NULL: the file is not possible */
};

/* Reports whether no other file is at least as small with at least as small a relative error; of equal files, the first
 * one counts. `one` is among them. */
bool quantization_is_best(const struct quantization *quantizations, size_t count, const struct quantization *one);

/* Returns roughly how many bytes of F32 values are measured for one mix: the bytes of its stage. */
uint64_t quantization_bytes(const struct gguf_model *model, bool all);

/* Returns the word for a relative error, in the terms of llama.cpp's types: "very large loss" to "nearly lossless". */
const char *quantization_word(double relative_error);

/* Returns the recommended one: the smallest file with a small loss or less, or NULL. */
const struct quantization *quantization_choice(const struct quantization *quantizations, size_t count);

/* All mixes of a model, in their order. */
struct quantizations {
    struct gguf_model *model;
    struct quantization *rows;
    size_t n_rows;
    bool by_importance; /* errors are weighted by an importance matrix */
};

/* Measures every mix of a tree's model, in all weights with `all`, as a stage (fs/lib/stage.h); an impossible file is a
 * result, not a failure. Fails for adapters, diffusion models and unknown families. quantizations_free() frees the
 * result. */
bool quantizations_measure(const struct tree *tree, bool all, struct quantizations *ret_quantizations,
                           struct error *error);
void quantizations_free(struct quantizations *quantizations);

/* Writes the array that `wfs info --quantization --json` prints: docs/metadata.md. */
void quantizations_put(struct json_writer *writer, const struct quantizations *quantizations);

/* The distribution of a model's weights, by kind of matrix: for `wfs info --quantization --html`.
 *
 * The unit for each matrix is the root mean square of its sample, its standard deviation around 0, since a block's
 * scale absorbs it. What remains is the shape of the distribution, and the distance of its outliers. */

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
