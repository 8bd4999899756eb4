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

/* Products of two matrices (quant/views/product.h) that stay products: a relation changes an adapter's two matrices
 * like the weight that they adapt.
 *
 * Moving rows moves the left factor's rows, and every result keeps the right factor; moving only columns of a matrix
 * moves the right factor's; a transpose swaps the factors. Other changes have no such form. */

/* Like rearrangement_apply(), for the factors of one product. Returns false, without an error, if no such form exists.
 */
bool low_rank_rearrange(struct arena *arena, const struct rearrangement *rearrangement, enum direction direction,
                        const struct axis_sizes *sizes, const struct view *product, const struct view **to);

/* Reports whether a rearrangement only swaps the two axes of a matrix: "i o -> o i", "i (a b) -> (a b) i". */
bool low_rank_is_transpose(const struct rearrangement *rearrangement, enum direction direction);

/* Like view_stack(), for products of one shape. Returns NULL if a view is not a product, or the ranks differ. */
const struct view *low_rank_stack(struct arena *arena, const struct view *const *products, size_t n_products);
