/* Facts: what is known of a model by name, whichever side it is read from.
 *
 * Sizes of axes (head, kv_head, expert ...) and flags, which are 1. What is not there is not known, or not so. */
#pragma once

#include "models/hparams.h"
#include "models/rearrangement.h"

enum { FACTS_MAX = 48, FACTS_MAX_FACTORS = 20 };

struct facts {
    struct axis_size sizes[FACTS_MAX];
    size_t n_sizes;
    uint64_t n_layers;

    struct {
        const char *name;
        float value;
    } factors[FACTS_MAX_FACTORS]; /* numbers that elements are multiplied with */
    size_t n_factors;
};

/* Sets a fact; one that is there already is changed. Names are not copied. */
void facts_set(struct facts *facts, const char *name, uint64_t size);
void facts_set_limit(struct facts *facts, const char *name, uint64_t size); /* of a section: at most that */
void facts_set_index(struct facts *facts, const char *name, uint64_t size, uint64_t index); /* of which one is taken */
void facts_forget(struct facts *facts, const char *name);

/* A factor of elements, and the value of one, which is 1 where it is not known. */
void facts_set_factor(struct facts *facts, const char *name, float value);
float facts_factor(const struct facts *facts, const char *name);

/* The size of that name, or 0. */
uint64_t facts_get(const struct facts *facts, const char *name);
uint64_t facts_get_n(const struct facts *facts, const char *name, size_t length);

/* What config.json says, and the numbers that rearrangements are made of: half 2, part 3 (query, key, value), even and
 * odd 1. */
void facts_read(struct facts *facts, const struct hparams *hparams);

/* The hyperparameters that have the number of key heads. */
#define KV_HEAD_COUNT "num_key_value_heads|n_kv_heads|num_kv_heads|n_head_kv"
