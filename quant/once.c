#include "quant/once.h"

#include "base/attempt.h"

#include <stdatomic.h>

static void release_value(void *context)
{
    struct once *once = context;
    void *value = atomic_load(&once->value);
    if (value != NULL)
        once->release(value);
    pthread_mutex_destroy(&once->lock);
}

void once_init(struct once *once, struct arena *arena, void (*release)(void *value))
{
    pthread_mutex_init(&once->lock, NULL);
    atomic_init(&once->value, NULL);
    once->release = release;
    arena_on_free(arena, release_value, once);
}

const void *once_get(struct once *once, once_function *compute, const void *context, struct error *error)
{
    void *value = atomic_load(&once->value);
    if (value != NULL)
        return value;
    attempt_lock(&once->lock);
    value = atomic_load(&once->value);
    if (value == NULL) {
        value = compute(context, error);
        atomic_store(&once->value, value);
    }
    attempt_unlock(&once->lock);
    return value;
}

bool once_known(struct once *once)
{
    return atomic_load(&once->value) != NULL;
}
