/* Tensor sets: tensors in order, found by name. Readers make sets, conversions turn one set into another, and writers
 * take them.
 *
 * A tensor is stored, with its elements at a place of a source, or derived: a view computed from others. A set is
 * filled by tensor_set_add() and then sealed, once; a sealed set does not change and is safe to read from any number of
 * threads. It lives in the arena it was made in; names, shapes, strides and views of its tensors live there, or in an
 * arena that is freed later. Sources belong to the checkpoint and outlive all sets.
 *
 * Memory matters, because 100,000 tensors are ordinary: a sealed set costs 88 bytes a tensor, plus names and shapes.
 * tensor_view() makes the view of a stored tensor on request. */
#pragma once

#include "base/arena.h"
#include "quant/views/view.h"
#include "sources/source.h"

/* Limits for readers. */
enum { TENSOR_SET_MAX = 4 * 1024 * 1024, TENSOR_MAX_NAME = 64 * 1024 };

struct tensor {
    const char *name; /* any bytes, NULs included, and a NUL at the end */
    uint32_t name_length;
    uint8_t rank;
    bool is_no_number; /* a refused tensor of texts or objects, which are no weights: models are whole without it */
    bool was_fp8;      /* in a GGUF's set: its last part is stored as FP8 with scales */
    const struct dtype *dtype;
    const uint64_t *shape;   /* elements */
    const uint64_t *strides; /* elements; NULL: row-major without gaps */

    struct source *source;   /* the source with its bytes; NULL if they are not in one place */
    uint64_t offset, length; /* its bytes there */

    /* Its values, if they are not the stored elements: byte-swapped, merged from several places, computed. Else NULL;
     * use tensor_view(). */
    const struct view *view;

    /* The reason why values cannot be shown: "sparse tensors are not supported". Such a tensor is listed without views,
     * and the checkpoint that lists it is incomplete, except if it is_no_number. */
    const char *refusal;
};

struct tensor_set {
    const struct tensor *tensors; /* in the order in which they were added */
    size_t n_tensors;
    const uint32_t *by_name; /* indices sorted by name, as bytes; NULL until the set is sealed */
    const uint32_t *ranks;   /* for each tensor, its place in by_name */
};

/* Makes an empty set. */
struct tensor_set *tensor_set_new(struct arena *arena);

/* Makes room for `n` more tensors, so that adding them moves none. The set must not be sealed. */
void tensor_set_reserve(struct tensor_set *set, size_t n);

/* Adds a copy of `*tensor`. The set must not be sealed. */
void tensor_set_add(struct tensor_set *set, const struct tensor *tensor);

/* Returns a view as a tensor. `name` is NUL-terminated and, like the view, not copied. */
struct tensor tensor_of_view(const char *name, const struct view *view);

/* Adds a view as a tensor. */
void tensor_set_add_view(struct tensor_set *set, const char *name, const struct view *view);

/* Returns the tensors of a set that is not sealed, to be changed or reordered before another is added. */
struct tensor *tensor_set_edit(struct tensor_set *set);

/* Returns a sealed set like the sealed `set`, but with the values and dtype of views[i] where that is not NULL. It
 * shares names and shapes. */
const struct tensor_set *tensor_set_with_views(struct arena *arena, const struct tensor_set *set,
                                               const struct view *const *views);

/* Returns the indices of tensors in the order of their names, stable for equal names. The caller frees the array. */
uint32_t *tensors_by_name(const struct tensor *tensors, size_t n_tensors);

/* Returns a set, not sealed, of the same tensors in the order of their names. */
struct tensor_set *tensor_set_ordered(const struct tensor_set *set, struct arena *arena);

/* Sorts the index, so that tensors can be found; fails on a duplicate name. Sealing again does nothing. */
bool tensor_set_seal(struct tensor_set *set, struct error *error);

/* Return the tensor of that name in a sealed set, or NULL. */
const struct tensor *tensor_set_find(const struct tensor_set *set, const char *name, size_t name_length);
const struct tensor *tensor_set_find_text(const struct tensor_set *set, const char *name); /* NUL-terminated */

/* Like tensor_set_find(), for a name close to the name of `near`, a tensor of the set: takes log n steps for n names
 * between the two. */
const struct tensor *tensor_set_find_near(const struct tensor_set *set, const struct tensor *near, const char *name,
                                          size_t name_length);

/* Returns the values of a tensor without refusal as a view: row-major, of the tensor's dtype and shape. A new view is
 * made in `arena` and borrows the tensor's shape. */
const struct view *tensor_view(const struct tensor *tensor, struct arena *arena);

/* Reports whether the elements lie one after the other in the source, in row-major order, needing no computation. */
bool tensor_is_stored(const struct tensor *tensor);

/* Reports whether a name is that of an optimizer's state: one of its first two keys says so. */
bool tensor_is_of_optimizer(const char *name, size_t name_length);

uint64_t tensor_elements(const struct tensor *tensor);

/* Returns a leaf: row-major elements at `offset` of a source, which must hold them all. For readers that build views.
 */
const struct view *view_of_source(struct arena *arena, struct source *source, uint64_t offset,
                                  const struct dtype *dtype, unsigned rank, const uint64_t *shape);
