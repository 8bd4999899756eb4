/* Values that the first reader computes: by one thread, again after a failure, and released with the arena. */
#include "quant/once.h"

#include "tests/unit/check.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { N_THREADS = 6, ANSWER = 42 };

static atomic_int n_computed, n_released, n_failures_left;

static void *compute(const void *context, struct error *error)
{
    int *value = malloc(sizeof *value);
    usleep(10000);
    atomic_fetch_add(&n_computed, 1);
    if (atomic_load(&n_failures_left) > 0) {
        atomic_fetch_sub(&n_failures_left, 1);
        free(value);
        error_set(error, "not yet");
        return NULL;
    }
    *value = *(const int *)context;
    return value;
}

static void release(void *value)
{
    atomic_fetch_add(&n_released, 1);
    free(value);
}

static void *get(void *once)
{
    static const int answer = ANSWER;
    struct error error;
    const int *value = once_get(once, compute, &answer, &error);
    return value != NULL && *value == ANSWER ? once : NULL;
}

/* Gets the value in several threads at once; returns how many have it. */
static int get_together(struct once *once)
{
    pthread_t threads[N_THREADS];
    int n = 0;
    for (int i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, get, once);
    for (int i = 0; i < N_THREADS; i++) {
        void *got;
        pthread_join(threads[i], &got);
        n += got != NULL;
    }
    return n;
}

int main(void)
{
    struct arena *arena = arena_new();
    struct once *once = arena_alloc(arena, sizeof *once), *unused = arena_alloc(arena, sizeof *unused);
    once_init(once, arena, release);
    once_init(unused, arena, release);
    CHECK(!once_known(once));
    atomic_store(&n_failures_left, 2);
    CHECK(get_together(once) == N_THREADS - 2 && atomic_load(&n_computed) == 3);
    CHECK(once_known(once) && !once_known(unused));
    CHECK(get_together(once) == N_THREADS && atomic_load(&n_computed) == 3);
    arena_free(arena);
    CHECK(atomic_load(&n_released) == 1);
    return check_done();
}
