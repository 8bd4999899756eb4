/* An object that several files share, such as the model of all GGUFs. The first plan makes it, and others wait for it.
 * If memory ran out (base/attempt.h), or a source could not be reached meanwhile (source_unreached()), nothing is kept,
 * and the next caller tries again. */
#pragma once

#include "base/error.h"
#include "base/lock.h"

struct lazy {
    struct lock making;
    void (*release)(void *value);
    void *value; /* NULL until it has been made */
    bool failed;
    struct error why; /* the reason, if it failed */
};

/* `release` frees a value. */
void lazy_init(struct lazy *lazy, void (*release)(void *value));
void lazy_destroy(struct lazy *lazy); /* frees the value */

/* Gets the value, which make(context, error) makes for the first caller. If that failed, the value is NULL and the
 * error has the reason: the first caller gets FAILED and all others REPORTED, so the reason is reported once. Memory
 * that ran out and a source that could not be reached are REPORTED, too: the plan of the file (plans.c) notes them. */
typedef void *lazy_maker(void *context, struct error *error);
enum outcome lazy_get(struct lazy *lazy, lazy_maker *make, void *context, void **ret_value, struct error *error);
