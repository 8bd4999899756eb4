/* An object that several files share, such as the model of all GGUFs. The first plan makes it, and others wait for it.
 * Running out of memory (base/attempt.h) is a failure like any other.
 *
 * The owner of the struct owns the value: lazy_destroy() does not free it. */
#pragma once

#include "base/error.h"

#include <pthread.h>

struct lazy {
    pthread_mutex_t making;
    void *value; /* NULL until it has been made */
    bool failed;
    struct error why; /* the reason, if it failed */
};

void lazy_init(struct lazy *lazy);
void lazy_destroy(struct lazy *lazy);

/* Gets the value, which make(context, error) makes for the first caller. If that failed, the value is NULL and the
 * error has the reason: the first caller gets FAILED and all others REPORTED, so the reason is reported once. */
typedef void *lazy_maker(void *context, struct error *error);
enum outcome lazy_get(struct lazy *lazy, lazy_maker *make, void *context, void **ret_value, struct error *error);
