/* A model's dimensions by name, the same for both directions of a relation: sizes of axes (head, kv_head, expert ...),
 * and flags, which are 1. A missing dimension is unknown, a missing flag is not set. */
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

/* Sets a dimension, or changes it. Names are not copied; more than DIMENSIONS_MAX is a bug in the caller. */
void dimensions_set(struct dimensions *dimensions, const char *name, uint64_t size);
void dimensions_set_limit(struct dimensions *dimensions, const char *name, uint64_t size); /* a section's upper limit */
void dimensions_set_index(struct dimensions *dimensions, const char *name, uint64_t size,
                          uint64_t index); /* takes index `index` only */
void dimensions_forget(struct dimensions *dimensions, const char *name);

/* Adds a multiplier of elements, at most DIMENSIONS_MAX_FACTORS; returns one, 1 if it is unknown. */
void dimensions_set_factor(struct dimensions *dimensions, const char *name, float value);
float dimensions_factor(const struct dimensions *dimensions, const char *name);

/* Return the size with that name, or 0. */
uint64_t dimensions_get(const struct dimensions *dimensions, const char *name);
uint64_t dimensions_get_n(const struct dimensions *dimensions, const char *name, size_t length);

/* The source of a dimension or flag in the hyperparameters. */
struct dimension_row {
    const char *name;
    const char *from; /* hyperparameters, the first present one counts: a number above 0, true or false; NULL: `size` */
    uint64_t size;    /* the value without such a hyperparameter; 0: unknown, not to be guessed from shapes */
    bool kept;        /* without such a hyperparameter, keep the dimension as it was */
};

/* Sets the dimensions of the rows, which end with one without a name. */
void dimensions_add(struct dimensions *dimensions, const struct dimension_row *rows, const struct hparams *hparams);

/* Reads the dimensions from config.json, and sets the constants of rearrangements: half is 2, part 3 (query, key,
 * value), even and odd 1. "tie_word_embeddings" is a flag. */
void dimensions_read(struct dimensions *dimensions, const struct hparams *hparams);

/* Hyperparameters for these numbers, the first one present counts, in the order in which most of the converter's
 * classes look for them. Llama's class has another one to cut tensors (llama_dimensions in families/llama/llama.c): if
 * a config.json has both names with different numbers, its tensors and keys differ, too. */
#define BLOCK_COUNT   "n_layers|num_hidden_layers|n_layer|num_layers"
#define HEAD_COUNT    "num_attention_heads|n_head|n_heads|num_heads"
#define KV_HEAD_COUNT "num_key_value_heads|n_kv_heads|num_kv_heads|n_head_kv"
