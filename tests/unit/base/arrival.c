/* Waits that end because the bytes arrive, the reader is interrupted, the time limit passes or wfs ends. */
#include "base/arrival.h"

#include "base/stop.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <pthread.h>

struct waiter {
    pthread_t thread;
    atomic_bool looked, here, interrupted;
    const struct timespec *deadline;
    const volatile int *stop;
    bool succeeded;
    struct error error;
};

static bool is_here(void *context)
{
    struct waiter *waiter = context;
    atomic_store(&waiter->looked, true);
    return atomic_load(&waiter->here);
}

static void *wait_for_it(void *context)
{
    struct waiter *waiter = context;
    arrival_set_reader(&waiter->interrupted);
    stop_use(waiter->stop);
    waiter->succeeded = arrival_wait(is_here, waiter, waiter->deadline, &waiter->error);
    return NULL;
}

/* Returns once the waiter has found its bytes missing: it then waits, or holds the lock until it does. */
static void begin(struct waiter *waiter)
{
    pthread_create(&waiter->thread, NULL, wait_for_it, waiter);
    while (!atomic_load(&waiter->looked))
        sched_yield();
}

static bool fails_with(struct waiter *waiter, int code)
{
    pthread_join(waiter->thread, NULL);
    return !waiter->succeeded && waiter->error.code == code;
}

int main(void)
{
    struct waiter first = {0}, second = {0}, late = {0}, last = {0}, stopped = {0};
    volatile int stop = 0, go_on = 0;
    const struct timespec past = {0};
    begin(&first);
    begin(&second);
    atomic_store(&first.here, true);
    arrival_announce();
    pthread_join(first.thread, NULL);
    CHECK_NAMED(first.succeeded, "the bytes of one of two waiters arrive");
    atomic_store(&second.interrupted, true);
    arrival_announce();
    CHECK_NAMED(fails_with(&second, EINTR), "the reader of the other is interrupted");

    atomic_store(&first.interrupted, true);
    arrival_set_reader(&first.interrupted);
    struct error error;
    CHECK_NAMED(arrival_wait(is_here, &first, NULL, &error), "an interrupted reader gets bytes that are here");
    arrival_set_reader(NULL);

    late.deadline = &past;
    begin(&late);
    CHECK_NAMED(fails_with(&late, ETIMEDOUT), "a deadline passes");
    CHECK(arrival_wait(is_here, &first, &past, &error));

    stopped.stop = &stop;
    begin(&stopped);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    CHECK_NAMED(fails_with(&stopped, ECANCELED), "a stop, which nobody announces");
    struct waiter unstopped = {.stop = &go_on, .deadline = &past};
    begin(&unstopped);
    CHECK_NAMED(fails_with(&unstopped, ETIMEDOUT), "a deadline that passes before");

    begin(&last);
    arrival_give_up();
    CHECK_NAMED(fails_with(&last, ECANCELED), "a wait under way when wfs ends");
    struct waiter after = {0};
    CHECK(!arrival_wait(is_here, &after, NULL, &error) && error.code == ECANCELED);
    CHECK_NAMED(arrival_wait(is_here, &first, NULL, &error), "bytes that are here, after the end");
    return check_done();
}
