/* Views: lazy tensors.
 *
 * A view has a dtype and a row-major shape, and gives its elements on demand: any run of them, in any order, from any
 * number of threads, computed from just the source bytes it depends on. Views are built on views; a leaf is a stored
 * tensor (formats/tensor_set.h) or a constant. Views live in the arena they were made in, with copies of the shapes
 * given to the functions below, and never change.
 *
 * Elements are counted in *units*: a unit is one block of the dtype, so for most dtypes one element. Along the last
 * axis a view holds whole units, and only whole units move: the last dimension of a Q4_0 view counts elements, but
 * views slice it 32 at a time.
 *
 * Law: only view_read() and view_read_runs() touch weight data; shapes and sizes are exact from the start. The
 * arguments of functions that make views are the program's own and are asserted; readers check sizes from files
 * before. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "quant/blocks/dtype.h"

enum { VIEW_MAX_RANK = 64 };

struct source;
struct view;
struct dependencies; /* dependencies.h */

/* The place in a source of stored units, which need no computation. */
struct extent {
    struct source *source;
    uint64_t offset; /* bytes from the start of the source */
};

/* `count` runs of `length` units each, `stride` units from the start of one to the start of the next. */
struct runs {
    uint64_t first, count, length, stride;
};

struct view_op {
    const char *name; /* for diagnostics: "tensor", "concatenate" */
    uint16_t cost;    /* approximate picoseconds per unit on one core, to decide on threads; 0: little */

    /* Reads the units [first, first + count), packed, into `out`, which may have any alignment. The range is inside the
     * view. */
    bool (*read)(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error);

    /* Names the stored bytes that reading the range touches, like view_depends(). NULL: those of `stored`, for a view
     * that computes nothing from another view. */
    void (*depends)(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to);

    /* Returns the number of units from `first` on that are stored one after the other, and their place in *ret_extent;
     * 0 if unit `first` must be computed. NULL: every unit is computed. */
    uint64_t (*stored)(const struct view *view, uint64_t first, struct extent *ret_extent);

    /* Like view_read_runs(). NULL: each run is read alone. */
    bool (*read_runs)(const struct view *view, const struct runs *runs, void *out, struct error *error);
};

struct view {
    const struct view_op *op;
    const struct dtype *dtype;
    const uint64_t *shape; /* elements */
    uint64_t n_elements;
    unsigned rank;
    /* neighbours lie apart, as in a transpose: one large read is much faster than many small ones */
    bool scattered;
};

static inline uint64_t view_units(const struct view *view)
{
    return dtype_blocks(view->dtype, view->n_elements);
}

static inline uint64_t view_bytes(const struct view *view)
{
    return view_units(view) * view->dtype->block_bytes;
}

/* Returns the elements of a row: the last dimension, or 1 for a scalar. */
static inline uint64_t view_row_elements(const struct view *view)
{
    return view->rank == 0 ? 1 : view->shape[view->rank - 1];
}

/* Returns the dimension before the last two, along which matrices are stacked; 1 for a matrix or a vector. */
static inline uint64_t view_matrices(const struct view *view)
{
    return view->rank >= 3 ? view->shape[view->rank - 3] : 1;
}

bool view_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error);
uint64_t view_stored(const struct view *view, uint64_t first, struct extent *ret_extent);

/* Adds the stored bytes that the units [first, first + count), inside the view, are computed from. Takes time
 * proportional to the number of runs, not of units. */
void view_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to);

/* Reads runs into `out`, without gaps: faster than view_read() for many short runs. */
bool view_read_runs(const struct view *view, const struct runs *runs, void *out, struct error *error);

/* Fills in the common part of a view with an op of the caller (view.c has examples). */
void view_init(struct view *view, struct arena *arena, const struct view_op *op, const struct dtype *dtype,
               unsigned rank, const uint64_t *shape);

/* Like view_init(), for a shape that lives as long as the view, such as that of another view: it is not copied. */
void view_init_shared(struct view *view, const struct view_op *op, const struct dtype *dtype, unsigned rank,
                      const uint64_t *shape);

/* Returns the same units with another shape of as many elements. */
const struct view *view_reshape(struct arena *arena, const struct view *view, unsigned rank, const uint64_t *shape);

/* Output unit [i0, i1, ...] is unit offset + i0 * strides[0] + i1 * strides[1] + ... of the flat `view`; offset and
 * strides count units, the last dimension of `shape` counts elements. The general rearrangement: transposes,
 * permutations, slices, steps and repetitions all use it. Reads runs along whichever axis has stride 1. */
const struct view *view_strided(struct arena *arena, const struct view *view, unsigned rank, const uint64_t *shape,
                                uint64_t offset, const uint64_t *strides);

/* Returns the axes reordered: output axis i is input axis order[i]. For dtypes of several elements a block the last
 * axis stays last. */
const struct view *view_permute(struct arena *arena, const struct view *view, const unsigned *order);

/* Returns the last two axes swapped. */
const struct view *view_transpose(struct arena *arena, const struct view *view);

/* Returns the indices first, first + step, ... (`count` indices) along one axis. Along the last axis of a block type,
 * `first` and `count` are whole blocks, and `step` is 1. */
const struct view *view_slice(struct arena *arena, const struct view *view, unsigned axis, uint64_t first,
                              uint64_t count, uint64_t step);

/* Joins views along an axis; their other dimensions and their dtype must be equal. */
const struct view *view_concatenate(struct arena *arena, const struct view *const *parts, size_t n_parts,
                                    unsigned axis);

/* Stacks views of one shape and dtype along a new first axis. */
const struct view *view_stack(struct arena *arena, const struct view *const *parts, size_t n_parts);

/* Returns a constant: `bytes` holds the units, and must live as long as the arena. */
const struct view *view_literal(struct arena *arena, const struct dtype *dtype, unsigned rank, const uint64_t *shape,
                                const void *bytes);

/* Returns F32 numbers of this machine as such a constant; they must live as long as the arena, too. */
const struct view *view_numbers(struct arena *arena, unsigned rank, const uint64_t *shape, const float *numbers);
