/* A value that is made once, whoever asks first; a reason that is said once. */
#include "formats/once.h"
#include "sources/source.h"
#include "tests/unit/check.h"

#include <stdatomic.h>

static atomic_int n_made;

static const void *make(void *context, struct arena *arena, struct error *error)
{
    n_made++;
    return context;
}

static const void *fail(void *context, struct arena *arena, struct error *error)
{
    error_set(error, "it cannot be made");
    return NULL;
}

static const void *want_too_much(void *context, struct arena *arena, struct error *error)
{
    memory_exhausted(12);
}

/* Fails as one does who cannot read a server. */
static const void *miss(void *context, struct arena *arena, struct error *error)
{
    source_count_unreached();
    return fail(context, arena, error);
}

/* What may be made later is made by the next caller. */
static void check_missed(once_maker *maker, const char *reason)
{
    struct once once;
    struct error error;
    const void *value;
    once_init(&once);
    CHECK(once_get(&once, maker, NULL, &value, &error) == REPORTED && value == NULL);
    CHECK_TEXT(error.message, reason);
    CHECK(once_get(&once, make, &once, &value, &error) == OK && value == &once);
    once_destroy(&once);
}

static void check_reason(void)
{
    static const char reason[] = "it cannot be made";
    struct once once;
    struct error error;
    once_init(&once);
    const void *value = &once;
    CHECK(once_get(&once, fail, NULL, &value, &error) == FAILED && value == NULL);
    CHECK_TEXT(error.message, reason);
    int code = error.code;
    error_set(&error, "nothing");
    error_set_code(&error, code + 1);
    CHECK(once_get(&once, make, &once, &value, &error) == REPORTED && value == NULL);
    CHECK_TEXT(error.message, reason);
    CHECK(error.code == code);
    once_destroy(&once);
}

static void *get(void *context)
{
    struct error error;
    const void *value;
    return once_get(context, make, context, &value, &error) == OK && value == context ? context : NULL;
}

int main(void)
{
    enum { THREADS = 8 };
    struct once once;
    pthread_t threads[THREADS];
    once_init(&once);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, get, &once) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *value;
        pthread_join(threads[i], &value);
        CHECK(value == &once);
    }
    CHECK(n_made == 1);
    once_destroy(&once);
    check_missed(miss, "it cannot be made");
    check_missed(want_too_much, "out of memory (12 bytes wanted)");
    check_reason();
    return check_done();
}
