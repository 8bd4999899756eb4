/* How large and how exact each quantization of a model would be, so that a person can choose: `wfs info
 * --quantization`.
 *
 * Errors are those of the stored values against the F32 values they stand for; with an importance matrix the mean
 * counts each by how much its column matters, whether its type was found by that or not. By default a sample of every
 * tensor is encoded and decoded again: runs of whole blocks spread evenly over it, the same ones every time. */
#pragma once

#include "models/quantize/quantize.h"

/* A matrix of a file. */
struct quantized_tensor {
    const char *name;
    const struct dtype *type;
    double relative_error;
};

struct quantization {
    const struct mix *mix;
    bool is_possible;
    struct error reason; /* why there is no such file, where it is not possible */
    uint64_t file_bytes;
    double bits_per_weight; /* of all weights, those that stay F32 included */
    double rmse, largest_error;
    /* of the matrices: the root of the mean square of each one's error as a share of its weights */
    double relative_error;
    struct quantized_tensor *tensors; /* the matrices, in the order of the file */
    size_t n_tensors;
    struct arena *arena; /* of the tensors; NULL where there is no such file */
};

void quantization_free(struct quantization *quantization);

/* Reports whether no other file that is as small has less error. */
bool quantization_is_best(const struct quantization *quantizations, size_t count, const struct quantization *one);

/* Bytes of F32 values that measuring one mix looks at. */
uint64_t quantization_bytes(const struct gguf_model *model, bool all);

/* The word for a relative error, as people who choose among llama.cpp's types know them: "very large loss" to "nearly
 * lossless".
 */
const char *quantization_word(double relative_error);

/* The one to recommend: the smallest file whose loss is small, or less. NULL where there is none. */
const struct quantization *quantization_choice(const struct quantization *quantizations, size_t count);

/* Measures one mix; all weights with `all`. `progress` is called now and then with the share done, 0 to 1, from any
 * thread; it may be NULL. The result is freed by quantization_free(). */
bool quantization_measure(const struct gguf_model *model, const struct mix *mix, const struct quantize_options *options,
                          bool all, void (*progress)(void *context, double share), void *context,
                          struct quantization *ret_quantization, struct error *error);
