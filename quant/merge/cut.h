/* The elements of a tensor that come before a position if they are sorted as torch sorts them.
 *
 * A cut keeps the key at the position; where it divides elements of that key, also a bit for each of them, among words
 * that cuts of one finding (finding.h) share. Finding it
 * reads the tensor once, or twice in F32; if equal elements are divided once more, with 8 bytes of memory for each
 * element of the tensor meanwhile. */
#pragma once

#include "base/buffer.h"
#include "quant/arithmetic/torch_functions.h"
#include "quant/merge/tiles.h"

struct cut {
    uint32_t key;                                      /* lower ones come before the position, higher ones after it */
    enum { EQUALS_AFTER, EQUALS_BEFORE, DIVIDED } how; /* elements of that key */
    uint64_t bits;     /* DIVIDED: the first word of bits, for each element of that key in turn: it comes before */
    uint64_t n_before; /* DIVIDED: the first word of counts, in tiles of MERGE_TILE: elements of that key before it */
};

/* Sets the keys of a tile's elements. */
typedef void merge_keys_function(const void *context, struct merge_tile *tile, uint32_t *keys);

/* What is cut: step of `merged` is MERGE_TILE. */
struct cut_source {
    const struct merged *merged;
    merge_keys_function *keys;
    const void *context; /* for `keys` */
};

/* How elements are sorted: std_sort_split() or std_top(). */
typedef void cut_function(struct sort_item *items, size_t n, size_t position);

/* Finds the cut at a position of at most the number of elements, and appends its words to `words`. */
bool cut_find(const struct cut_source *source, uint64_t position, cut_function *split, struct buffer *words,
              struct cut *ret_cut, struct error *error);

/* Sets before[i] for the elements of a tile with these keys. */
void cut_look_up(const struct cut *cut, const uint64_t *words, const struct merge_tile *tile, const uint32_t *keys,
                 bool *before);

/* Returns the key of a magnitude, by which numbers are sorted ascending, NaN last. */
static inline uint32_t key_of(float value)
{
    const uint32_t nan = 0x7fc00000;
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    bits &= 0x7fffffff;
    return bits > 0x7f800000 ? nan : bits;
}

/* Differences from a base, thinned out: the sparsifiers of mergekit's task arithmetic. */

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
