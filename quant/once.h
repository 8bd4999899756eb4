/* A value that the first reader computes and every later one shares: a tensor's norm, say.
 *
 * Readers that come while it is computed wait. After a failure the next reader tries again. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <pthread.h>

struct once {
    pthread_mutex_t lock; /* held by the thread that computes */
    _Atomic(void *) value;
    void (*release)(void *value);
};

/* Returns a new value, which no arena owns; NULL: an error. */
typedef void *once_function(const void *context, struct error *error);

/* Calls `release` with the value, if there is one, when the arena is freed. */
void once_init(struct once *once, struct arena *arena, void (*release)(void *value));

/* Returns the value; NULL: an error. */
const void *once_get(struct once *once, once_function *compute, const void *context, struct error *error);

/* Reports whether the value is there already. */
bool once_known(struct once *once);
