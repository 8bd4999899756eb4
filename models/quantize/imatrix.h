/* Importance matrices: for each matrix of a model, by its name in GGUF, the mean square of what each of its columns was
 * multiplied with while llama-imatrix ran the model over some text.
 *
 * Both forms of the file are read: GGUF, and the older one without a header. A matrix is read whole when it is opened,
 * and takes as much memory as its file; it does not change afterwards. Source: common/imatrix-loader.cpp and
 * tools/quantize/quantize.cpp of llama.cpp. */
#pragma once

#include "formats/tensor_set.h"
#include "quant/encoding.h"

#include <stdbool.h>
#include <stdint.h>

struct imatrix_entry {
    const char *name;
    const float *values; /* of every column; of experts one after the other */
    uint64_t n_values;
    bool finite; /* no value is infinite or NaN */
};

struct imatrix {
    const char *file;    /* as the user named it */
    const char *dataset; /* the first text that it was made of; NULL where none is named */
    uint64_t n_chunks;   /* of text; 0 where that is not known */
    struct imatrix_entry *entries;
    size_t n_entries;  /* sorted by name */
    uint64_t n_unseen; /* matrices, most often experts, that nothing was multiplied with: all their columns are 1 */
};

/* Reads the file; everything is in the arena. NULL on failure. */
const struct imatrix *imatrix_open(const char *path, struct arena *arena, struct error *error);

/* Which entries count: those whose names hold one of the texts of `include` and none of `exclude`. Lists end with NULL,
 * and a list that is NULL says nothing. */
struct imatrix_filter {
    const char *const *include, *const *exclude;
};

/* The number of entries that count, 0 of no matrix. */
size_t imatrix_count(const struct imatrix *imatrix, const struct imatrix_filter *filter);

/* Refuses an infinite or NaN value in any entry that counts. */
bool imatrix_check(const struct imatrix *imatrix, const struct imatrix_filter *filter, struct error *error);

/* Returns the importances of a tensor from an entry: its columns, if there are as many as values, and in any case how
 * many the tensor has. `entry` may be NULL. */
struct importance imatrix_importance(const struct imatrix_entry *entry, const struct tensor *tensor);

/* The entry of that name, if it counts; or NULL. */
const struct imatrix_entry *imatrix_find(const struct imatrix *imatrix, const struct imatrix_filter *filter,
                                         const char *name);
