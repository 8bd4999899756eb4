/* The dimensions of a model by name, the same for both directions of a relation: sizes of axes (head, kv_head,
 * expert ...), and flags, which are 1. A missing dimension is unknown, a missing flag is not set. */
#pragma once

#include "models/config/hparams.h"
#include "models/relation/rearrangement.h"

enum { DIMENSIONS_MAX = 48, DIMENSIONS_MAX_FACTORS = 20 };

struct dimensions {
    struct axis_size sizes[DIMENSIONS_MAX];
    size_t n_sizes;
    uint64_t n_layers;

    struct {
        const char *name;
        float value;
    } factors[DIMENSIONS_MAX_FACTORS]; /* multipliers of elements */
    size_t n_factors;
};

/* Sets a dimension, or changes it. Names are not copied. */
void dimensions_set(struct dimensions *dimensions, const char *name, uint64_t size);
void dimensions_set_limit(struct dimensions *dimensions, const char *name, uint64_t size); /* the most, for a section */
void dimensions_set_index(struct dimensions *dimensions, const char *name, uint64_t size,
                          uint64_t index); /* takes one part */
void dimensions_forget(struct dimensions *dimensions, const char *name);

/* Set and return a multiplier of elements; 1 if it is unknown. */
void dimensions_set_factor(struct dimensions *dimensions, const char *name, float value);
float dimensions_factor(const struct dimensions *dimensions, const char *name);

/* Return the size of that name, or 0. */
uint64_t dimensions_get(const struct dimensions *dimensions, const char *name);
uint64_t dimensions_get_n(const struct dimensions *dimensions, const char *name, size_t length);

/* A dimension, or a flag, as hyperparameters have it. */
struct dimension_row {
    const char *name;
    const char *from; /* the first present one counts: a number above 0, true or false; NULL: `size` */
    uint64_t size;    /* without such a number; 0: unknown, and not to be guessed from shapes */
    bool kept;        /* without such a number the dimension stays as it was, instead */
};

/* Sets the dimensions of the rows, up to one without a name. */
void dimensions_add(struct dimensions *dimensions, const struct dimension_row *rows, const struct hparams *hparams);

/* Reads the dimensions from config.json, and sets the constants of rearrangements: half 2, part 3 (query, key, value),
 * even and odd 1. "tie_word_embeddings" is a flag. */
void dimensions_read(struct dimensions *dimensions, const struct hparams *hparams);

/* The hyperparameters that have these numbers, the first one present: as the converter's classes look for them when
 * they cut tensors (llama.py, falcon.py, phi.py). For attention.head_count and head_count_kv it looks for
 * num_attention_heads and num_key_value_heads first (base.py, base_keys in families/shared.c): a config.json in which
 * they differ gives tensors and keys that differ, too. */
#define BLOCK_COUNT   "n_layers|num_hidden_layers|n_layer|num_layers"
#define HEAD_COUNT    "n_heads|num_attention_heads|n_head|num_heads"
#define KV_HEAD_COUNT "n_kv_heads|num_key_value_heads|num_kv_heads|n_head_kv"
