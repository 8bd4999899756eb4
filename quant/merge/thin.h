/* Differences from a base, thinned out: the sparsifiers of mergekit's task arithmetic. */
#pragma once

#include "quant/merge/cut.h"

/* How the differences of one model are thinned out: its density is less than 1. */
struct thinning {
    enum merge_sparsifier sparsifier; /* not MERGE_DENSE */
    double density;
    double extra; /* gamma or epsilon */
    bool rescale; /* the sum of magnitudes stays what it was */
    struct mersenne *random;
    uint64_t first_word;
};

/* What is found out about all differences of a model. */
struct thinning_facts {
    struct cut low, high;
    float factor; /* to multiply what is left by; 1: none */
};

/* Facts with the words of their cuts, which models share. */
struct thinning_known {
    const struct thinning_facts *facts;
    const uint64_t *words;
};

/* Returns the step that tiles need (struct merged). */
uint64_t thin_step(enum merge_sparsifier sparsifier, const struct view *view);

/* Reports whether random words are drawn: one for each element. */
bool thin_draws(enum merge_sparsifier sparsifier, double density);

/* Reports whether facts are needed that depend on the whole tensor. */
bool thin_needs_facts(const struct thinning *thinning);

/* Finds them, and appends the words of the cuts; `merged` has the only model. */
bool thin_find_facts(const struct thinning *thinning, const struct merged *merged, struct buffer *words,
                     struct thinning_facts *ret_facts, struct error *error);

/* Thins out the differences of a tile, with two of its spare arrays. Facts may be zeros if none are needed. */
void thin_tile(const struct thinning *thinning, const struct thinning_known *known, const struct view *view,
               struct merge_tile *tile, float *deltas);
