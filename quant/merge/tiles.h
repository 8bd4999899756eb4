/* Merged tensors that are computed tile by tile: what their views have in common. */
#pragma once

#include "quant/merge/merge.h"
#include "quant/views/combine.h"
#include "quant/views/finding.h"

#include <math.h>

enum {
    MERGE_TILE = 8192, /* elements; a few tiles stay in the second-level cache */
    MERGE_SPARES = 3,
};

/* The beginning of a method's own structure. */
struct merged {
    struct view view;
    const struct view *base; /* NULL: none */
    const struct view *const *models;
    size_t n_models;
    uint64_t step; /* 0: tiles begin anywhere and have at most MERGE_TILE elements; else they begin at multiples of it,
                      and have so many, or those up to the end of the tensor */
};

/* The inputs of some elements, in F32, rounded to the work dtype. Functions may change what the pointers lead to. */
struct merge_tile {
    struct rounded in;
    uint64_t first; /* element of the tensor */
    size_t n;
    float *base; /* NULL: none */
    float **models;
    float *spare[MERGE_SPARES]; /* for intermediate results */
};

/* Does something with a tile. */
typedef bool merge_visit_function(void *context, struct merge_tile *tile, struct error *error);

/* Returns the elements of a tile, which are among those that it leads to; NULL: an error. */
typedef const float *merge_tile_function(const struct merged *merged, struct merge_tile *tile, struct error *error);

/* Fills in the common part, with the views of the operands; the base only if `with_base`. Tiles begin anywhere. */
void merge_init(struct merged *merged, struct arena *arena, const struct view_op *op,
                const struct merge_operands *operands, bool with_base);

/* Visits in order the tiles that elements [first, first + count) are in. */
bool merge_walk(const struct merged *merged, uint64_t first, uint64_t count, merge_visit_function *visit, void *context,
                struct error *error);

/* Reads a range for view_op.read. */
bool merge_read(const struct view *view, uint64_t first, uint64_t count, void *out, merge_tile_function *compute,
                struct error *error);

/* Names the range in all inputs, with the whole of its tiles, for view_op.depends. */
void merge_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to);

/* Names the whole of all inputs until the finding is known that is computed from them, and then the range. */
void merge_depends_on(const struct view *view, struct finding *finding, uint64_t first, uint64_t count,
                      struct dependencies *to);

/* Returns a step of whole rows, of at least MERGE_TILE elements if there are so many. */
uint64_t merge_step_of_rows(const struct view *view);

/* Replaces each model's elements by their difference from the base's, if there is a base. */
void merge_subtract_base(const struct merged *merged, struct merge_tile *tile);

/* Allocates arrays of the tile's length, as many as there are models; free() releases all. */
float **merge_arrays_new(const struct merged *merged, const struct merge_tile *tile);

/* Adds up the terms, as many as there are models, element by element, rounded at the end, as torch's sum along the
 * first axis of stacked tensors does: in F32, whose order depends on the place of an element in the tensor. */
void merge_sum(const struct merged *merged, const struct merge_tile *tile, float *const *terms, float *sums);

/* Sines, cosines and arc cosines of F32 numbers, computed in F64 and rounded. torch calls Intel's MKL, whose errors are
 * up to 0.8 units in the last place: of random angles one sine in 20 and one arc cosine in 11 differ by a unit. */

static inline float torch_sin(float angle)
{
    return (float)sin((double)angle);
}

static inline float torch_cos(float angle)
{
    return (float)cos((double)angle);
}

static inline float torch_acos(float cosine)
{
    return (float)acos((double)cosine);
}
