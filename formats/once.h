/* A value that is made once, for all who ask: the model of all GGUFs, say. The first caller makes it, and others wait
 * for it meanwhile.
 *
 * Makers of one value may ask for others, not in a circle. A value lives in an arena of its own until once_destroy().
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/lock.h"

struct once {
    struct lock making;
    struct arena *arena; /* of the value; NULL: nothing has been made yet */
    const void *value;   /* NULL also if it cannot be made ... */
    const char *why; /* ... for this reason, in the arena; a struct error in each would be most of a model's memory */
    int code;        /* of the reason */
};

/* Returns NULL, with the reason, if the value cannot be made. What the value owns beside the arena is registered with
 * arena_on_free() in the maker's last step: nothing may run out of memory after that. */
typedef const void *once_maker(void *context, struct arena *arena, struct error *error);

void once_init(struct once *once);
void once_destroy(struct once *once); /* frees the value */

/* Gets the value. If there is none, it is NULL and the error has the reason: the first caller gets FAILED and all
 * others REPORTED, so the reason is reported once. If memory ran out (base/attempt.h), or a source could not be reached
 * meanwhile (source_unreached()), nothing is kept: that caller gets REPORTED, too, because the plan of a file
 * (fs/tree/plans.c) notes both, and the next caller tries again. */
enum outcome once_get(struct once *once, once_maker *make, void *context, const void **ret_value, struct error *error);

/* Returns the value of a maker that always makes one, NULL included, and keeps it whatever could not be reached. If
 * memory runs out, so it does for the caller. */
const void *once_value(struct once *once, once_maker *make, void *context);
