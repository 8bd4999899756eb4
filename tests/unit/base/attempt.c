/* Work that memory does not suffice for: what it held is given back, what was kept before stays. */
#include "base/attempt.h"
#include "base/arena.h"

#include "tests/unit/check.h"

#include <stdint.h>

static int n_released;

static void count_release(void *unused)
{
    (void)unused;
    n_released++;
}

static struct arena *counted_arena(void)
{
    struct arena *arena = arena_new();
    arena_on_free(arena, count_release, NULL);
    return arena;
}

static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER, second_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_free(pthread_mutex_t *lock)
{
    if (pthread_mutex_trylock(lock) != 0)
        return false;
    pthread_mutex_unlock(lock);
    return true;
}

struct job {
    bool lacks, reached_end;
    struct arena *kept;
};

static void work(void *context)
{
    struct job *job = context;
    attempt_lock(&first_lock);
    attempt_lock(&second_lock);
    arena_free(counted_arena());
    job->kept = counted_arena();
    struct arena *freed = counted_arena();
    struct arena *last = counted_arena();
    arena_free(freed);
    if (job->lacks)
        arena_array(last, SIZE_MAX / 2, 4);
    arena_free(last);
    attempt_unlock(&second_lock);
    attempt_unlock(&first_lock);
    job->reached_end = true;
}

static void one(void)
{
    struct error error = {""};
    struct job job = {.lacks = false};
    n_released = 0;
    CHECK(attempt(work, &job, &error) && job.reached_end && error.message[0] == '\0');
    CHECK(n_released == 3 && is_free(&first_lock) && is_free(&second_lock));
    arena_free(job.kept);
    CHECK(n_released == 4);

    job = (struct job){.lacks = true};
    n_released = 0;
    CHECK(!attempt(work, &job, &error) && !job.reached_end);
    CHECK(n_released == 4 && is_free(&first_lock) && is_free(&second_lock));
    CHECK_TEXT(error.message, "out of memory (18446744073709551615 bytes wanted)");
    CHECK(attempt_lacking(work, &job) == SIZE_MAX);
}

struct nested {
    struct job inner;
    struct error inner_error;
    bool inner_done, is_held_after, outer_lacks;
    struct arena *outer;
};

static void work_with_another(void *context)
{
    static pthread_mutex_t outer_lock = PTHREAD_MUTEX_INITIALIZER;
    struct nested *nested = context;
    attempt_lock(&outer_lock);
    nested->outer = counted_arena();
    nested->inner_done = attempt(work, &nested->inner, &nested->inner_error);
    nested->is_held_after = !is_free(&outer_lock);
    if (nested->outer_lacks)
        memory_exhausted(12);
    arena_free(nested->outer);
    attempt_unlock(&outer_lock);
}

static void inner_fails(void)
{
    struct error error = {""};
    struct nested nested = {.inner = {.lacks = true}};
    n_released = 0;
    CHECK(attempt(work_with_another, &nested, &error) && !nested.inner_done && nested.is_held_after);
    CHECK(n_released == 5);
}

/* What an attempt of its own has made stays. */
static void outer_fails(void)
{
    struct error error = {""};
    struct nested nested = {.outer_lacks = true};
    n_released = 0;
    CHECK(!attempt(work_with_another, &nested, &error) && nested.inner_done);
    CHECK_TEXT(error.message, "out of memory (12 bytes wanted)");
    CHECK(n_released == 4);
    arena_free(nested.inner.kept);
    CHECK(n_released == 5);
}

int main(void)
{
    one();
    inner_fails();
    outer_fails();
    return check_done();
}
