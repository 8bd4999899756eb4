/* Reads that stall: they hold up nobody, and all end together. */
#include "fs/mount/remote_reads.h"

#include "base/arrival.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <pthread.h>

enum { STALLED = 1000, N_READS = 100, MOST_THREADS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned n_begun, n_answered, n_given_up, n_dropped;

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

int fuse_reply_err(fuse_req_t req, int error)
{
    (void)req;
    if (error == EIO)
        count(&n_dropped);
    return 0;
}

static bool never(void *context)
{
    (void)context;
    return false;
}

static void answer(const struct queued_read *read)
{
    struct error error;
    if (read->ino < STALLED) {
        count(&n_answered);
        return;
    }
    count(&n_begun);
    if (!arrival_wait(never, NULL, NULL, &error) && error.code == ECANCELED)
        count(&n_given_up);
}

static bool add(struct remote_reads *reads, fuse_ino_t number)
{
    const struct queued_read read = {.ino = number, .size = 4096};
    return remote_reads_add(reads, &read);
}

int main(void)
{
    struct remote_reads *reads = remote_reads_new(answer);
    bool added = true;
    for (fuse_ino_t i = 0; i < 32; i++)
        added &= add(reads, STALLED + i);
    await_count(&n_begun, 32);
    for (fuse_ino_t i = 0; i < N_READS; i++)
        added &= add(reads, i);
    await_count(&n_answered, N_READS);
    CHECK_NAMED(added, "reads are answered beside 32 that stall");
    for (fuse_ino_t i = 32; i < N_READS; i++)
        added &= add(reads, STALLED + i);
    await_count(&n_begun, MOST_THREADS);
    CHECK_NAMED(added, "more than there are threads are queued");
    arrival_give_up();
    remote_reads_free(reads);
    CHECK_NAMED(n_begun == n_given_up, "each that stalled ends");
    CHECK_NAMED(n_begun + n_dropped == N_READS, "each that was queued gets EIO, or is begun and ends");
    CHECK(n_answered == N_READS);
    return check_done();
}
