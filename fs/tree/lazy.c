#include "fs/tree/lazy.h"

#include "base/attempt.h"

struct making {
    lazy_maker *make;
    void *context, *value;
    struct error *error;
};

static void run_maker(void *context)
{
    struct making *making = context;
    making->value = making->make(making->context, making->error);
}

void lazy_init(struct lazy *lazy)
{
    *lazy = (struct lazy){.value = NULL};
    pthread_mutex_init(&lazy->making, NULL);
}

void lazy_destroy(struct lazy *lazy)
{
    pthread_mutex_destroy(&lazy->making);
}

enum outcome lazy_get(struct lazy *lazy, lazy_maker *make, void *context, void **ret_value, struct error *error)
{
    struct making making = {.make = make, .context = context, .error = error};
    enum outcome outcome = REPORTED;
    attempt_lock(&lazy->making);
    if (lazy->value == NULL && !lazy->failed) {
        attempt(run_maker, &making, error);
        lazy->value = making.value;
        lazy->failed = making.value == NULL;
        outcome = FAILED;
        if (lazy->failed)
            lazy->why = *error;
    } else if (lazy->failed) {
        *error = lazy->why;
    }
    *ret_value = lazy->value;
    attempt_unlock(&lazy->making);
    return *ret_value != NULL ? OK : outcome;
}
