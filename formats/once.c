#include "formats/once.h"

#include "base/attempt.h"
#include "sources/source.h"

#include <stdio.h>

struct making {
    struct once *once;
    once_maker *make;
    void *context;
    struct error *error;
};

static void run_maker(void *context)
{
    struct making *making = context;
    struct arena *arena = arena_new();
    struct once *once = making->once;
    const void *value = making->make(making->context, arena, making->error);
    if (value == NULL) {
        once->why = arena_strdup(arena, making->error->message);
        once->code = making->error->code;
    }
    once->value = value;
    once->arena = arena;
}

void once_init(struct once *once)
{
    *once = (struct once){0};
    lock_init(&once->making);
}

static void drop(struct once *once)
{
    arena_free(once->arena);
    once->arena = NULL;
    once->value = NULL;
}

void once_destroy(struct once *once)
{
    drop(once);
    lock_destroy(&once->making);
}

/* Makes the value, or records why that failed. A value made without a source that could not be reached is dropped. */
static enum outcome make_value(struct making *making)
{
    struct once *once = making->once;
    uint64_t n_unreached = source_unreached();
    if (!attempt(run_maker, making, making->error))
        source_count_unreached(); /* memory may be there later */
    if (source_unreached() != n_unreached) {
        if (once->value != NULL)
            error_set(making->error, "a source could not be read");
        drop(once);
        return REPORTED;
    }
    return FAILED;
}

static void repeat_error(const struct once *once, struct error *error)
{
    snprintf(error->message, sizeof error->message, "%s", once->why);
    error->code = once->code;
}

enum outcome once_get(struct once *once, once_maker *make, void *context, const void **ret_value, struct error *error)
{
    struct making making = {once, make, context, error};
    enum outcome outcome = REPORTED;
    lock_take(&once->making);
    if (once->arena == NULL)
        outcome = make_value(&making);
    else if (once->value == NULL)
        repeat_error(once, error);
    *ret_value = once->value;
    lock_drop(&once->making);
    return *ret_value != NULL ? OK : outcome;
}

const void *once_value(struct once *once, once_maker *make, void *context)
{
    struct error unused = {""};
    struct making making = {once, make, context, &unused};
    lock_take(&once->making);
    size_t lacking = once->arena == NULL ? attempt_lacking(run_maker, &making) : 0;
    const void *value = once->value;
    lock_drop(&once->making);
    if (lacking != 0)
        memory_exhausted(lacking);
    return value;
}
