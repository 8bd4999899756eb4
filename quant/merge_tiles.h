/* Merged tensors that are computed tile by tile: what their views have in common. */
#pragma once

#include "quant/merge.h"
#include "quant/rounded.h"

enum { MERGE_TILE = 8192 }; /* elements; a few tiles in F32 stay in the second-level cache */

/* The beginning of a method's own structure. */
struct merged {
    struct view view;
    const struct view *base;
    const struct view *const *models;
    size_t n_models;
};

/* The inputs of some elements, in F32, rounded to the work dtype. Functions may change what the pointers lead to. */
struct merge_tile {
    struct rounded in;
    uint64_t first; /* element of the tensor */
    size_t n;       /* at most MERGE_TILE */
    float *base;    /* NULL: none */
    float **models;
    float *result; /* uninitialized; to be filled in */
};

typedef void merge_tile_function(const struct merged *merged, struct merge_tile *tile);

/* Fills in the common part, with the views of the operands; the base only if `with_base`. */
void merge_init(struct merged *merged, struct arena *arena, const struct view_op *op,
                const struct merge_operands *operands, bool with_base);

/* Reads a range for view_op.read: each tile by `compute`. */
bool merge_read(const struct view *view, uint64_t first, uint64_t count, void *out, merge_tile_function *compute,
                struct error *error);

/* Names the range in all inputs, for view_op.depends. */
void merge_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to);
