#include "fs/tree/lazy.h"

#include "base/attempt.h"
#include "base/lock.h"
#include "formats/source.h"

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

void lazy_init(struct lazy *lazy, void (*release)(void *value))
{
    *lazy = (struct lazy){.release = release};
    lock_init(&lazy->making);
}

void lazy_destroy(struct lazy *lazy)
{
    if (lazy->value != NULL)
        lazy->release(lazy->value);
    lock_destroy(&lazy->making);
}

/* Makes the value, or records why that failed. A value made without a source that could not be reached is dropped. */
static enum outcome make_value(struct lazy *lazy, struct making *making)
{
    uint64_t n_unreached = source_unreached();
    if (!attempt(run_maker, making, making->error))
        source_count_unreached(); /* memory may be there later */
    if (source_unreached() != n_unreached) {
        if (making->value != NULL) {
            lazy->release(making->value);
            error_set(making->error, "a source could not be read");
        }
        return REPORTED;
    }
    lazy->value = making->value;
    lazy->failed = making->value == NULL;
    if (lazy->failed)
        lazy->why = *making->error;
    return FAILED;
}

enum outcome lazy_get(struct lazy *lazy, lazy_maker *make, void *context, void **ret_value, struct error *error)
{
    struct making making = {.make = make, .context = context, .error = error};
    enum outcome outcome = REPORTED;
    attempt_lock(&lazy->making);
    if (lazy->value == NULL && !lazy->failed) {
        outcome = make_value(lazy, &making);
    } else if (lazy->failed) {
        *error = lazy->why;
    }
    *ret_value = lazy->value;
    attempt_unlock(&lazy->making);
    return *ret_value != NULL ? OK : outcome;
}
