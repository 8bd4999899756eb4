/* Importance matrices: for each matrix of a model, by its GGUF name, the mean square of each column's inputs while
 * llama-imatrix ran the model over some text.
 *
 * Both forms of the file are read: GGUF, and the older one without a header. imatrix_open() reads the whole file into
 * memory, about as much as its size; it does not change afterwards. Source: common/imatrix-loader.cpp and
 * tools/quantize/quantize.cpp of llama.cpp. */
#pragma once

#include "formats/tensor_set.h"
#include "models/shown_tensors.h"
#include "quant/blocks/dtype.h"

#include <stdbool.h>
#include <stdint.h>

struct imatrix_entry {
    const char *name;
    const float *values; /* one for each column; expert after expert */
    uint64_t n_values;
    bool finite; /* no value is infinite or NaN */
};

struct imatrix {
    const char *file;    /* the path as the user gave it, not copied */
    const char *dataset; /* the first text that it was made from; NULL: not named */
    uint64_t n_chunks;   /* chunks of text; 0: unknown */
    struct imatrix_entry *entries;
    size_t n_entries;  /* sorted by name */
    uint64_t n_unseen; /* in GGUF form, matrices without inputs, most often experts: all their columns are 1 */
};

/* Reads the file into the arena; `path` must live as long. Returns NULL on failure. */
const struct imatrix *imatrix_open(const char *path, struct arena *arena, struct error *error);

/* Chooses the entries that count: their names contain a text of `include` and none of `exclude`. Lists end with NULL; a
 * list that is NULL has no effect. */
struct imatrix_filter {
    const char *const *include, *const *exclude;
};

/* Returns the number of entries that count; 0 if `imatrix` is NULL. */
size_t imatrix_count(const struct imatrix *imatrix, const struct imatrix_filter *filter);

/* Fails if an entry that counts has an infinite or NaN value. */
bool imatrix_check(const struct imatrix *imatrix, const struct imatrix_filter *filter, struct error *error);

/* How much each column of a tensor's rows matters (struct encoding). */
struct importance {
    const float *columns; /* NULL: unknown */
    uint64_t n_columns, n_matrices;
};

/* Returns the importances of a tensor: the entry's values as columns, if their number fits, and always the numbers of
 * the tensor's columns and matrices. `entry` may be NULL, and must outlive the result. */
struct importance imatrix_importance(const struct imatrix_entry *entry, const struct tensor *tensor);

/* Returns the entry of that name, if it counts, or NULL; `imatrix` may be NULL. */
const struct imatrix_entry *imatrix_find(const struct imatrix *imatrix, const struct imatrix_filter *filter,
                                         const char *name);

/* Importances of a checkpoint's own tensors, from an importance matrix with GGUF names. A tensor has importances if its
 * columns become the columns of one GGUF matrix, or of one expert in it; a tensor that the conversion transposes or
 * divides has none. */

/* Returns the importances of each shown tensor, in the arena; for a tensor without any, `columns` is NULL. Returns NULL
 * if `imatrix` is NULL; it must outlive the result. */
const struct importance *importances_of(const struct checkpoint *checkpoint, const struct shown_tensors *shown,
                                        const struct imatrix *imatrix, const struct imatrix_filter *filter,
                                        struct arena *arena);
