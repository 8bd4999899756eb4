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
