#include "base/arrival.h"

#include "base/stop.h"
#include "base/system.h"

#include <errno.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t announced;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static bool given_up; /* guarded by the lock */
static _Thread_local const atomic_bool *reader_interrupted;

static void prepare(void)
{
    system_condition_init(&announced);
}

static bool fail(int code, const char *reason, struct error *error)
{
    error_set(error, "%s", reason);
    return error_set_code(error, code);
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

static struct timespec in_a_moment(void)
{
    enum { MOMENT = 100 * 1000 * 1000, SECOND = 1000 * 1000 * 1000 /* nanoseconds */ };
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += (time.tv_nsec + MOMENT) / SECOND;
    time.tv_nsec = (time.tv_nsec + MOMENT) % SECOND;
    return time;
}

/* Waits with the lock for an announcement, or for a moment where the work may be stopped, which nobody announces.
 * Returns false at the deadline. */
static bool wait_for_news(const struct timespec *deadline)
{
    const struct timespec moment = in_a_moment();
    if (stop_flag() != NULL && (deadline == NULL || is_before(&moment, deadline))) {
        system_wait_until(&announced, &lock, &moment);
        return true;
    }
    if (deadline == NULL) {
        pthread_cond_wait(&announced, &lock);
        return true;
    }
    return system_wait_until(&announced, &lock, deadline) != ETIMEDOUT;
}

bool arrival_wait(bool (*is_here)(void *context), void *context, const struct timespec *deadline, struct error *error)
{
    bool here, in_time = true, stopped = false;
    pthread_once(&prepared, prepare);
    pthread_mutex_lock(&lock);
    while (!(here = is_here(context)) && in_time && !given_up &&
           !(reader_interrupted != NULL && atomic_load(reader_interrupted)) && !(stopped = stop_is_due(error)))
        in_time = wait_for_news(deadline);
    bool ended = given_up;
    pthread_mutex_unlock(&lock);
    if (here || stopped)
        return here;
    if (ended)
        return fail(ECANCELED, "no longer waited for: wfs is ending", error);
    return in_time ? fail(EINTR, "the read was interrupted", error)
                   : fail(ETIMEDOUT, "nothing arrived within the time limit", error);
}

void arrival_announce(void)
{
    pthread_once(&prepared, prepare);
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&announced);
    pthread_mutex_unlock(&lock);
}

void arrival_set_reader(const atomic_bool *interrupted)
{
    reader_interrupted = interrupted;
}

void arrival_give_up(void)
{
    pthread_once(&prepared, prepare);
    pthread_mutex_lock(&lock);
    given_up = true;
    pthread_cond_broadcast(&announced);
    pthread_mutex_unlock(&lock);
}
