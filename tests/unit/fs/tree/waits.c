/* Work that stalls: it holds up nobody, and all of it ends together. */
#include "fs/tree/waits.h"

#include "base/arrival.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

enum { N_STALLED = 32, N_WORKS = 100, MOST_THREADS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned n_begun, n_answered, n_given_up;

static void count(unsigned *counter)
{
    pthread_mutex_lock(&lock);
    ++*counter;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void await_count(const unsigned *counter, unsigned value)
{
    pthread_mutex_lock(&lock);
    while (*counter < value)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static bool never(void *context)
{
    (void)context;
    return false;
}

static void answer(void *context, void *item)
{
    (void)context, (void)item;
    count(&n_answered);
}

static void stall(void *context, void *item)
{
    struct error error;
    (void)context, (void)item;
    count(&n_begun);
    if (!arrival_wait(never, NULL, NULL, &error) && error.code == ECANCELED)
        count(&n_given_up);
}

static bool add(struct waits *waits, wait_work *work, unsigned n_times)
{
    bool added = true;
    while (n_times-- > 0)
        added &= waits_add(waits, work, NULL, NULL);
    return added;
}

static void go_on(void *context, void *item)
{
    count(context);
    await_count(item, 1);
}

/* Lets the first piece of work end when the drop has begun. */
static void *release(void *released)
{
    usleep(50000);
    count(released);
    return NULL;
}

static void test_drop(void)
{
    unsigned n_started = 0, released = 0;
    struct waits *waits = waits_new(1, 0);
    pthread_t thread;
    CHECK(waits_add(waits, go_on, &n_started, &released) && waits_add(waits, go_on, &n_started, &released));
    await_count(&n_started, 1);
    CHECK(pthread_create(&thread, NULL, release, &released) == 0);
    waits_drop(waits);
    CHECK_NAMED(n_started == 1, "work that no thread has begun is dropped, and the rest awaited");
    pthread_join(thread, NULL);
    CHECK(!waits_add(waits, go_on, &n_started, &released));
    waits_free(waits);
}

int main(void)
{
    struct waits *waits = waits_new(MOST_THREADS, WAITS_IDLE);
    CHECK(add(waits, stall, N_STALLED));
    await_count(&n_begun, N_STALLED);
    CHECK_NAMED(add(waits, answer, N_WORKS), "work is done beside work that stalls");
    await_count(&n_answered, N_WORKS);
    CHECK_NAMED(add(waits, stall, N_WORKS - N_STALLED), "more than there are threads is queued");
    await_count(&n_begun, MOST_THREADS);
    arrival_give_up();
    waits_end(waits);
    CHECK_NAMED(n_begun == N_WORKS && n_given_up == N_WORKS, "each that stalled or was queued ends");
    CHECK(n_answered == N_WORKS);
    CHECK_NAMED(!waits_add(waits, answer, NULL, NULL), "no work is taken after the end");
    waits_free(waits);
    test_drop();
    return check_done();
}
