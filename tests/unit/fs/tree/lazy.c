/* A value that is made once, whoever asks first; a reason that is said once. */
#include "fs/tree/lazy.h"
#include "base/arena.h"
#include "formats/source.h"
#include "tests/unit/check.h"

#include <stdatomic.h>

static atomic_int n_made;

static void *make(void *context, struct error *error)
{
    (void)error;
    n_made++;
    return context;
}

/* The values of this test belong to it. */
static void keep(void *value)
{
}

static void *fail(void *context, struct error *error)
{
    (void)context;
    error_set(error, "it cannot be made");
    return NULL;
}

static void *want_too_much(void *context, struct error *error)
{
    (void)context, (void)error;
    memory_exhausted(12);
}

/* Fails as one does who cannot read a server. */
static void *miss(void *context, struct error *error)
{
    source_count_unreached();
    return fail(context, error);
}

/* What may be made later is made by the next caller. */
static void check_missed(lazy_maker *maker, const char *reason)
{
    struct lazy lazy;
    struct error error;
    void *value;
    lazy_init(&lazy, keep);
    CHECK(lazy_get(&lazy, maker, NULL, &value, &error) == REPORTED && value == NULL);
    CHECK_TEXT(error.message, reason);
    CHECK(lazy_get(&lazy, make, &lazy, &value, &error) == OK && value == &lazy);
    lazy_destroy(&lazy);
}

static void check_reason(void)
{
    static const char reason[] = "it cannot be made";
    struct lazy lazy;
    struct error error;
    lazy_init(&lazy, keep);
    void *value = &lazy;
    CHECK(lazy_get(&lazy, fail, NULL, &value, &error) == FAILED && value == NULL);
    CHECK_TEXT(error.message, reason);
    error_set(&error, "nothing");
    CHECK(lazy_get(&lazy, make, &lazy, &value, &error) == REPORTED && value == NULL);
    CHECK_TEXT(error.message, reason);
    lazy_destroy(&lazy);
}

static void *get(void *context)
{
    struct error error;
    void *value;
    return lazy_get(context, make, context, &value, &error) == OK ? value : NULL;
}

int main(void)
{
    enum { THREADS = 8 };
    struct lazy lazy;
    pthread_t threads[THREADS];
    lazy_init(&lazy, keep);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, get, &lazy) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *value;
        pthread_join(threads[i], &value);
        CHECK(value == &lazy);
    }
    CHECK(n_made == 1);
    lazy_destroy(&lazy);
    check_missed(miss, "it cannot be made");
    check_missed(want_too_much, "out of memory (12 bytes wanted)");
    check_reason();
    return check_done();
}
