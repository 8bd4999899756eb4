/* Work that stalls: it holds up nobody, and all of it ends together. */
#include "fs/tree/waits.h"

#include "base/arrival.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <pthread.h>

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

static void answer(void *context)
{
    (void)context;
    count(&n_answered);
}

static void stall(void *context)
{
    struct error error;
    (void)context;
    count(&n_begun);
    if (!arrival_wait(never, NULL, NULL, &error) && error.code == ECANCELED)
        count(&n_given_up);
}

static bool add(struct waits *waits, wait_work *work, unsigned n_times)
{
    bool added = true;
    while (n_times-- > 0)
        added &= waits_add(waits, work, NULL);
    return added;
}

int main(void)
{
    struct waits *waits = waits_new(MOST_THREADS);
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
    CHECK_NAMED(!waits_add(waits, answer, NULL), "no work is taken after the end");
    waits_free(waits);
    return check_done();
}
