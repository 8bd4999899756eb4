/* Rearrangements: the places of some tensors' elements in other tensors, as data that works in both directions.
 *
 * The notation (axes.h) is that of einops' rearrange() and repeat(); read backwards it is its own inverse:
 *
 *     (head half pair) ... -> (head pair half) ...    rows regrouped: halves become pairs
 *     i o -> o i                                      transposed
 *     c 1 k -> c k                                    an axis of 1 dropped
 *     (gate + up) c -> gate c, up c                   sections of the rows, each a tensor of its own; backwards: joined
 *     (row (gate + up)) c -> (row gate) c, (row up) c
 *                                                     interleaved sections, if gate and up are 1
 *     (group (q + k + v) d) c -> (group q d + group k d + group v d) c
 *                                                     sections of each group become sections of the whole
 *     (padding + row) c -> row c                      rows cut off; backwards: zeros
 *     (rank row) c -> row c                           one of equal parts, that at the index of rank
 *     (head d) c -> (head copy d) c                   repeated; backwards: the copy at the index
 *
 * Sizes of names are given, or follow from the shapes. Unknown names of one dimension are equal to each other: (gate +
 * up) are halves. A section that only the result has is empty unless its size is given.
 *
 * Views of blocks keep their blocks if only whole blocks move (for NVFP4: groups of 16); otherwise they are converted
 * to F32, like tensors of different dtypes that become one. */
#pragma once

#include "models/relation/axes.h"
#include "quant/views/view.h"

/* Rotary rows whose halves become pairs. */
#define QUERY_ROTARY "(head half pair) ... -> (head pair half) ..."
#define KEY_ROTARY   "(kv_head half pair) ... -> (kv_head pair half) ..."

struct axis_size {
    const char *name;
    uint64_t size;
    uint64_t index; /* the index taken, if the result lacks the axis */
    bool is_limit;  /* a section: at most `size`, and at most all remaining rows */
};

struct axis_sizes {
    const struct axis_size *sizes;
    size_t n_sizes;
};

/* Makes the views of the other side: FORWARD reads from left to right. `from` holds the views of the side read, `to`
 * has room for those of the other side. Fails if shapes do not fit; the error has the shape, the notation and the
 * sizes. */
bool rearrangement_apply(struct arena *arena, const struct rearrangement *rearrangement, enum direction direction,
                         const struct axis_sizes *sizes, const struct view *const *from, const struct view **to,
                         struct error *error);

/* Finds the size of a name if tensors with these shapes are rearranged. Fails like rearrangement_apply(), and if the
 * side read lacks the name. */
bool rearrangement_size(const struct rearrangement *rearrangement, enum direction direction,
                        const struct axis_sizes *sizes, const struct view *const *from, const char *name,
                        uint64_t *ret_size, struct error *error);
