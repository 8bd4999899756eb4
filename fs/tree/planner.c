#include "fs/tree/waits.h"

#include "base/arena.h"
#include "base/lock.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_THREADS = 64 };

struct work {
    struct work *next;
    planner_task *task;
    void *context, *item;
};

struct planner {
    struct lock lock;
    struct event thread_left;
    struct work *first, **end; /* work that has not begun */
    unsigned n_unfinished;     /* pieces of work, begun or not */
    unsigned n_threads;
    pid_t started_by; /* the process that has the threads; 0: there was none yet */
};

struct planner *planner_new(void)
{
    struct planner *planner = memory_alloc(sizeof *planner);
    *planner = (struct planner){.end = &planner->first};
    lock_init(&planner->lock);
    event_init(&planner->thread_left);
    return planner;
}

static struct work *take(struct planner *planner)
{
    struct work *work = planner->first;
    if (work == NULL)
        return NULL;
    planner->first = work->next;
    if (planner->first == NULL)
        planner->end = &planner->first;
    return work;
}

void planner_free(struct planner *planner)
{
    if (planner == NULL)
        return;
    if (planner->started_by != 0 && planner->started_by != getpid()) { /* a child of a fork has none of the threads */
        free(planner);
        return;
    }
    lock_take(&planner->lock);
    for (struct work *work; (work = take(planner)) != NULL; free(work))
        planner->n_unfinished--;
    while (planner->n_threads > 0)
        event_wait(&planner->thread_left, &planner->lock);
    lock_drop(&planner->lock);
    event_destroy(&planner->thread_left);
    lock_destroy(&planner->lock);
    free(planner);
}

/* Returns freed memory to the system if no work is left for this thread, and releases the lock meanwhile. */
static void trim_after_last(struct planner *planner)
{
    if (planner->first != NULL)
        return;
    lock_drop(&planner->lock);
    memory_trim();
    lock_take(&planner->lock);
}

static void *run_work(void *context)
{
    struct planner *planner = context;
    lock_take(&planner->lock);
    for (struct work *work; (work = take(planner)) != NULL; free(work)) {
        lock_drop(&planner->lock);
        work->task(work->context, work->item);
        lock_take(&planner->lock);
        planner->n_unfinished--;
        trim_after_last(planner);
    }
    planner->n_threads--;
    event_wake_all(&planner->thread_left);
    lock_drop(&planner->lock);
    return NULL;
}

/* Starts a thread for a piece of work; returns true without one if a running thread can do it later. */
static bool start_thread(struct planner *planner)
{
    pthread_t thread;
    if (planner->n_threads == MAX_THREADS || pthread_create(&thread, NULL, run_work, planner) != 0)
        return planner->n_threads > 0;
    pthread_detach(thread);
    planner->started_by = getpid();
    planner->n_threads++;
    return true;
}

bool planner_add(struct planner *planner, planner_task *task, void *context, void *item)
{
    lock_take(&planner->lock);
    struct work *work = malloc(sizeof *work);
    bool started = work != NULL && (planner->n_unfinished < planner->n_threads || start_thread(planner));
    if (!started) {
        free(work);
    } else {
        *work = (struct work){NULL, task, context, item};
        *planner->end = work;
        planner->end = &work->next;
        planner->n_unfinished++;
    }
    lock_drop(&planner->lock);
    return started;
}
