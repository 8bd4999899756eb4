#include "fs/tree/pool.h"

#include "base/arena.h"
#include "base/attempt.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MAX_THREADS = 64 };

struct job {
    struct job *next;
    void (*task)(void *context, size_t index);
    void *context;
    size_t n_tasks;
    atomic_size_t next_task;
    atomic_size_t n_lacking; /* bytes that a task could not allocate; 0: no task failed */
    size_t n_helpers;        /* pool threads at work on this job; guarded by the lock */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_came = PTHREAD_COND_INITIALIZER, helper_left = PTHREAD_COND_INITIALIZER;
static struct job *jobs; /* jobs with tasks that no thread has taken yet */
static pthread_once_t started = PTHREAD_ONCE_INIT;

size_t pool_width(void)
{
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (n_cores < 1)
        return 1;
    return n_cores < MAX_THREADS ? (size_t)n_cores : MAX_THREADS;
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

static void remove_job(struct job *job)
{
    for (struct job **link = &jobs; *link != NULL; link = &(*link)->next)
        if (*link == job) {
            *link = job->next;
            return;
        }
}

static void *pool_thread(void *unused)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        while (jobs == NULL)
            pthread_cond_wait(&work_came, &lock);
        struct job *job = jobs;
        job->n_helpers++;
        pthread_mutex_unlock(&lock);
        run_tasks(job);
        pthread_mutex_lock(&lock);
        remove_job(job);
        job->n_helpers--;
        pthread_cond_broadcast(&helper_left);
    }
    return NULL;
}

static void start_threads(void)
{
    for (size_t i = 1; i < pool_width(); i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, pool_thread, NULL) == 0) /* on failure, the other threads do the work */
            pthread_detach(thread);
    }
}

void pool_run(size_t n_tasks, void (*task)(void *context, size_t index), void *context)
{
    struct job job = {.task = task, .context = context, .n_tasks = n_tasks};
    pthread_once(&started, start_threads);
    pthread_mutex_lock(&lock);
    job.next = jobs;
    jobs = &job;
    pthread_cond_broadcast(&work_came);
    pthread_mutex_unlock(&lock);
    run_tasks(&job);
    pthread_mutex_lock(&lock);
    remove_job(&job);
    while (job.n_helpers > 0)
        pthread_cond_wait(&helper_left, &lock);
    pthread_mutex_unlock(&lock);
    if (job.n_lacking > 0)
        memory_exhausted(job.n_lacking);
}
