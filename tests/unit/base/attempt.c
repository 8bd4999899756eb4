/* Work that memory does not suffice for: what it held is given back, what was kept before stays. */
#include "base/attempt.h"
#include "base/arena.h"
#include "base/process.h"

#include "tests/unit/check.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

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

static struct lock first_lock = LOCK_INITIALIZER, second_lock = LOCK_INITIALIZER;

static bool is_free(struct lock *lock)
{
    if (pthread_mutex_trylock(&lock->mutex) != 0)
        return false;
    pthread_mutex_unlock(&lock->mutex);
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
    static struct lock outer_lock = LOCK_INITIALIZER;
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

static struct lock held_lock = LOCK_INITIALIZER;

static void fail_under_lock(void *unused)
{
    lock_take(&held_lock);
    memory_exhausted(7);
}

static void lack(void *unused)
{
    memory_exhausted(5);
}

static void fail_within(void *n_lacking)
{
    lock_take(&held_lock);
    *(size_t *)n_lacking = attempt_lacking(lack, NULL);
    lock_drop(&held_lock);
}

static void fail_at_exit(void)
{
    _exit(2);
}

/* Returns the status of a process in which the work of an attempt runs out of memory. */
static int status_of(void (*work_of_child)(void *context))
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        atexit(fail_at_exit);
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(4);
        attempt_lacking(work_of_child, NULL);
        _exit(3);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The code that would release the lock no longer runs, so the process ends, and waits for nobody. */
static void under_lock(void)
{
    size_t n_lacking = 0;
    process_allow(PROCESS_EXIT);
    CHECK(status_of(fail_under_lock) == 1);
    CHECK(attempt_lacking(fail_within, &n_lacking) == 0 && n_lacking == 5);
}

int main(void)
{
    one();
    inner_fails();
    outer_fails();
    under_lock();
    return check_done();
}
