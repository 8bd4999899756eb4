/* An object that several files share, such as the model of all GGUFs: made and kept when the first file is planned,
 * while the others wait. Running out of memory (base/attempt.h) is a failure like any other.
 *
 * Who embeds one owns the value. */
#pragma once

#include "base/error.h"

#include <pthread.h>

struct lazy {
    pthread_mutex_t making;
    void *value; /* NULL until it has been made */
    bool failed;
    struct error why; /* it failed */
};

void lazy_init(struct lazy *lazy);
void lazy_destroy(struct lazy *lazy);

/* Gives the value, made by make(context, error) for the first caller; NULL where that failed, for the first caller with
 * FAILED, for all others with REPORTED: so the reason is reported once. */
typedef void *lazy_maker(void *context, struct error *error);
enum outcome lazy_get(struct lazy *lazy, lazy_maker *make, void *context, void **ret_value, struct error *error);
