/* Tensor sets: tensors in order, found by name. What readers make, what one set is turned into another by, what writers
 * take.
 *
 * A tensor is stored, its elements at a place of a source, or derived: a view computed from others. Both are ordinary
 * members. A set is filled by tensor_set_add() and then sealed, once; after that it does not change and may be read
 * from any number of threads. It lives in the arena it was made in and is freed with it; names, shapes, strides and
 * views of its tensors live there, or in an arena that is freed later. Sources belong to the checkpoint and live longer
 * than all.
 *
 * Memory is counted, since 100,000 tensors are ordinary: a sealed set costs 88 bytes a tensor besides names and shapes.
 * A view of a stored tensor is made when somebody asks for it. */
#pragma once

#include "base/arena.h"
#include "formats/source.h"
#include "quant/view.h"

/* What readers accept. */
enum { TENSOR_SET_MAX = 4 * 1024 * 1024, TENSOR_MAX_NAME = 64 * 1024 };

struct tensor {
    const char *name; /* any bytes but for the NUL that ends it in memory; may hold NULs itself */
    uint32_t name_length;
    uint8_t rank;
    const struct dtype *dtype;
    const uint64_t *shape;   /* elements */
    const uint64_t *strides; /* elements; NULL: row-major without gaps */

    struct source *source;   /* what holds it; NULL where it is in no single place */
    uint64_t offset, length; /* its bytes there */

    /* Its values, where they are not simply the elements at offset, shape and strides: byte-swapped, merged from
     * several places, computed. NULL for all others; tensor_view() makes what is wanted. */
    const struct view *view;

    /* Where values cannot be shown, why: "sparse tensors are not supported". It is listed, without files of values. */
    const char *refusal;
};

struct tensor_set {
    struct tensor *tensors; /* in the order in which they were added */
    size_t n_tensors;
    uint32_t *by_name; /* indices sorted by name, as bytes; NULL until the set is sealed */
    uint32_t *ranks;   /* of each tensor its place in by_name */
};

/* An empty set. */
struct tensor_set *tensor_set_new(struct arena *arena);

/* Adds a copy of `*tensor`. Not to a sealed set. */
void tensor_set_add(struct tensor_set *set, const struct tensor *tensor);

/* Adds a tensor that is the view. `name` is NUL-terminated and, like the view, not copied. */
void tensor_set_add_view(struct tensor_set *set, const char *name, const struct view *view);

/* The places of tensors in the order of their names; of one name, in their own. To be given back with free(). */
uint32_t *tensors_by_name(const struct tensor *tensors, size_t n_tensors);

/* Sorts the index, so that tensors can be found; refuses a name that is there twice. Sealing again does nothing. */
bool tensor_set_seal(struct tensor_set *set, struct error *error);

/* The tensor of that name in a sealed set, or NULL. */
const struct tensor *tensor_set_find(const struct tensor_set *set, const char *name, size_t name_length);
const struct tensor *tensor_set_find_text(const struct tensor_set *set, const char *name); /* NUL-terminated */

/* The same of a name that is like that of `near`, a tensor of the set: found in as many steps as the logarithm of the
 * number of names between the two. */
const struct tensor *tensor_set_find_near(const struct tensor_set *set, const struct tensor *near, const char *name,
                                          size_t name_length);

/* The values of a tensor as a view, made in `arena` where there is none yet: row-major, of the tensor's dtype and
 * shape, which lives longer. Not for a tensor that has a refusal. */
const struct view *tensor_view(const struct tensor *tensor, struct arena *arena);

/* Whether the elements lie one after the other in the source, in row-major order, needing no computation. */
bool tensor_is_stored(const struct tensor *tensor);

uint64_t tensor_elements(const struct tensor *tensor);

/* A leaf: row-major elements at `offset` of a source, which has them all. For readers that build views themselves. */
const struct view *view_of_source(struct arena *arena, struct source *source, uint64_t offset,
                                  const struct dtype *dtype, unsigned rank, const uint64_t *shape);
