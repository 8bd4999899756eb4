/* What several files are made of, such as the model of all GGUFs: made when the first of them is planned, and
 * kept; the others wait for it. Memory that does not suffice (base/attempt.h) is a failure like any other.
 *
 * Who embeds one owns the value. */
#pragma once

#include "base/error.h"

#include <pthread.h>

struct lazy {
    pthread_mutex_t making;
    void *value; /* NULL until it has been made */
    bool failed;
};

void lazy_init(struct lazy *lazy);
void lazy_destroy(struct lazy *lazy);

/* The value, made by make(context, error) unless that was done or has failed; NULL where it has. The reason is for the
 * first who asks; `error` is empty for all others, so that it is said once. */
typedef void *lazy_maker(void *context, struct error *error);
void *lazy_get(struct lazy *lazy, lazy_maker *make, void *context, struct error *error);
