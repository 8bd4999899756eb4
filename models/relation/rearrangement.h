/* Rearrangements: how the elements of some tensors lie in some others, as data that is read in both directions.
 *
 * The notation (axes.h) is that of einops' rearrange() and repeat(); read backwards it is its own inverse:
 *
 *     (head half pair) ... -> (head pair half) ...    rows regrouped: halves become pairs
 *     i o -> o i                                      transposed
 *     c 1 k -> c k                                    an axis of 1 dropped
 *     (gate + up) c -> gate c, up c                   sections of the rows, each a tensor of its own; backwards: joined
 *     (row (gate + up)) c -> (row gate) c, (row up) c
 *                                                     the same interleaved, where gate and up are 1
 *     (group (q + k + v) d) c -> (group q d + group k d + group v d) c
 *                                                     sections of each group become sections of the whole
 *     (padding + row) c -> row c                      rows cut off; backwards: zeros
 *     (rank row) c -> row c                           one of equal parts, that at the index of rank
 *     (head d) c -> (head copy d) c                   repeated; backwards: the copy at the index
 *
 * Sizes of names are given, or follow from the shapes. Names of one dimension that are not known are equal to each
 * other: (gate + up) are halves. A section that is on the other side alone has no elements where its size is not given.
 *
 * Views of blocks stay what they are where only whole blocks move (of NVFP4 its groups of 16), and are converted to F32
 * otherwise; so are tensors of different dtypes that become one. */
#pragma once

#include "models/relation/axes.h"
#include "quant/view.h"

/* Rotary rows, whose halves become pairs. */
#define QUERY_ROTARY "(head half pair) ... -> (head pair half) ..."
#define KEY_ROTARY   "(kv_head half pair) ... -> (kv_head pair half) ..."

struct axis_size {
    const char *name;
    uint64_t size;
    uint64_t index; /* of the part taken, where the axis is not in the result */
    bool is_limit;  /* of a section: at most `size`, and no more than there is */
};

struct axis_sizes {
    const struct axis_size *sizes;
    size_t n_sizes;
};

/* Makes the views of the other side: FORWARD reads from left to right. `from` holds as many views as that side has
 * tensors, `to` has room for those of the other. Fails where the shapes do not fit; the error has the shape, the
 * notation and the sizes. */
bool rearrangement_apply(struct arena *arena, const struct rearrangement *rearrangement, enum direction direction,
                         const struct axis_sizes *sizes, const struct view *const *from, const struct view **to,
                         struct error *error);

/* The size of a name where tensors of these shapes are rearranged, in *ret_size. Fails as rearrangement_apply(), and
 * where the name is not on the side that is read from. */
bool rearrangement_size(const struct rearrangement *rearrangement, enum direction direction,
                        const struct axis_sizes *sizes, const struct view *const *from, const char *name,
                        uint64_t *ret_size, struct error *error);
