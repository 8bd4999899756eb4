#include "base/pool.h"

#include "base/arena.h"
#include "base/attempt.h"
#include "base/lock.h"
#include "base/stop.h"
#include "base/system.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_THREADS = 64 };

struct job {
    struct job *next;
    void (*task)(void *context, size_t index);
    void *context;
    const volatile int *stop; /* the caller's (stop.h) */
    size_t n_tasks;
    atomic_size_t next_task;
    atomic_size_t n_lacking; /* bytes that a task could not allocate; 0: no task failed */
    size_t n_helpers;        /* pool threads at work on this job; guarded by the lock */
};

struct pool {
    size_t width;
    struct lock lock; /* guards the following fields */
    struct event work_came, helper_left;
    struct job *jobs; /* jobs with tasks that no thread has taken yet */
    bool started, is_ending;
    pid_t started_by; /* the process that has the threads: a child of a fork has none */
    size_t n_threads;
    pthread_t threads[MAX_THREADS];
};

static _Thread_local struct pool *used;
static struct pool *shared; /* by main(), before other threads start */

struct pool *pool_new(size_t width)
{
    struct pool *pool = memory_alloc(sizeof *pool);
    if (width == 0)
        width = system_processors();
    *pool = (struct pool){.width = width < MAX_THREADS ? width : MAX_THREADS};
    lock_init(&pool->lock);
    event_init(&pool->work_came);
    event_init(&pool->helper_left);
    return pool;
}

void pool_free(struct pool *pool)
{
    if (pool == NULL)
        return;
    if (pool->started && pool->started_by != getpid()) { /* those that it remembers as waiting will never leave */
        free(pool);
        return;
    }
    lock_take(&pool->lock);
    pool->is_ending = true;
    event_wake_all(&pool->work_came);
    lock_drop(&pool->lock);
    for (size_t i = 0; i < pool->n_threads; i++)
        pthread_join(pool->threads[i], NULL);
    event_destroy(&pool->helper_left);
    event_destroy(&pool->work_came);
    lock_destroy(&pool->lock);
    free(pool);
}

struct pool *pool_use(struct pool *pool)
{
    struct pool *before = used;
    used = pool;
    return before;
}

void pool_share(struct pool *pool)
{
    shared = pool;
}

static struct pool *current(void)
{
    return used != NULL ? used : shared;
}

size_t pool_width(void)
{
    return current() != NULL ? current()->width : 1;
}

static void take_tasks(void *context)
{
    struct job *job = context;
    size_t index;
    while ((index = atomic_fetch_add(&job->next_task, 1)) < job->n_tasks)
        job->task(job->context, index);
}

/* Runs tasks until none is left or memory runs out. The caller waits even then: the job is on its stack. */
static void run_tasks(struct job *job)
{
    size_t n_lacking = attempt_lacking(take_tasks, job);
    if (n_lacking > 0)
        atomic_store(&job->n_lacking, n_lacking);
}

static void remove_job(struct pool *pool, struct job *job)
{
    for (struct job **link = &pool->jobs; *link != NULL; link = &(*link)->next)
        if (*link == job) {
            *link = job->next;
            return;
        }
}

static void *pool_thread(void *context)
{
    struct pool *pool = used = context;
    lock_take(&pool->lock);
    for (;;) {
        while (pool->jobs == NULL && !pool->is_ending)
            event_wait(&pool->work_came, &pool->lock);
        if (pool->is_ending)
            break;
        struct job *job = pool->jobs;
        job->n_helpers++;
        lock_drop(&pool->lock);
        stop_use(job->stop);
        run_tasks(job);
        lock_take(&pool->lock);
        remove_job(pool, job);
        job->n_helpers--;
        event_wake_all(&pool->helper_left);
    }
    lock_drop(&pool->lock);
    return NULL;
}

/* Starts the threads, which take no signal but those that they cause themselves, by a fault or by writing to a pipe
 * that nobody reads: the handlers are the program's. If a thread cannot be had, the others do the work. The caller has
 * the lock. */
static void start_threads(struct pool *pool)
{
    static const int own[] = {SIGBUS, SIGFPE, SIGILL, SIGPIPE, SIGSEGV};
    sigset_t blocked, before;
    pool->started = true;
    pool->started_by = getpid();
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    while (pool->n_threads + 1 < pool->width &&
           pthread_create(&pool->threads[pool->n_threads], NULL, pool_thread, pool) == 0)
        pool->n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void run_job(struct pool *pool, struct job *job)
{
    lock_take(&pool->lock);
    if (!pool->started)
        start_threads(pool);
    job->next = pool->jobs;
    pool->jobs = job;
    event_wake_all(&pool->work_came);
    lock_drop(&pool->lock);
    run_tasks(job);
    lock_take(&pool->lock);
    remove_job(pool, job);
    while (job->n_helpers > 0)
        event_wait(&pool->helper_left, &pool->lock);
    lock_drop(&pool->lock);
}

void pool_run(size_t n_tasks, void (*task)(void *context, size_t index), void *context)
{
    struct job job = {.task = task, .context = context, .stop = stop_flag(), .n_tasks = n_tasks};
    struct error unused;
    if (pool_width() > 1)
        run_job(current(), &job);
    else
        take_tasks(&job);
    stop_is_due(&unused);
    if (job.n_lacking > 0)
        memory_exhausted(job.n_lacking);
}
