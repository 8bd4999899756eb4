#include "fs/tree/waits.h"

#include "base/arena.h"
#include "base/lock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct waiting {
    struct waiting *next;
    wait_work *work;
    void *context, *item;
};

struct waits {
    struct lock lock;
    struct event came, thread_left;
    struct waiting *first, **end; /* work that no thread has begun */
    size_t n_queued, n_idle, n_threads, most_threads, most_idle;
    _Atomic(pid_t) started_by; /* the process that has the threads; 0: there was none yet. Read without the lock */
    bool ending;
};

struct waits *waits_new(size_t most_threads, size_t most_idle)
{
    struct waits *waits = memory_alloc(sizeof *waits);
    *waits = (struct waits){.end = &waits->first, .most_threads = most_threads, .most_idle = most_idle};
    lock_init(&waits->lock);
    event_init(&waits->came);
    event_init(&waits->thread_left);
    return waits;
}

/* Takes the next piece of work; the caller has the lock. */
static struct waiting *take(struct waits *waits)
{
    struct waiting *taken = waits->first;
    if (taken == NULL)
        return NULL;
    waits->first = taken->next;
    if (waits->first == NULL)
        waits->end = &waits->first;
    waits->n_queued--;
    return taken;
}

/* Waits for work; returns NULL if there is none and the thread must end. */
static struct waiting *await(struct waits *waits)
{
    while (waits->first == NULL && !waits->ending && waits->n_idle < waits->most_idle) {
        waits->n_idle++;
        event_wait(&waits->came, &waits->lock);
        waits->n_idle--;
    }
    return take(waits);
}

/* Returns freed memory to the system before the last thread ends, and releases the lock meanwhile. */
static void trim_after_last(struct waits *waits)
{
    if (waits->most_idle > 0 || waits->n_threads > 1 || waits->first != NULL)
        return;
    lock_drop(&waits->lock);
    memory_trim();
    lock_take(&waits->lock);
}

static void *do_work(void *context)
{
    struct waits *waits = context;
    lock_take(&waits->lock);
    for (struct waiting *taken; (taken = await(waits)) != NULL; free(taken)) {
        lock_drop(&waits->lock);
        taken->work(taken->context, taken->item);
        lock_take(&waits->lock);
        trim_after_last(waits);
    }
    waits->n_threads--;
    event_wake_all(&waits->thread_left);
    lock_drop(&waits->lock);
    return NULL;
}

/* Starts a thread if none is free for one more piece of work. Reports whether there is any thread. */
static bool has_thread(struct waits *waits)
{
    pthread_t thread;
    if (waits->n_queued >= waits->n_idle && waits->n_threads < waits->most_threads &&
        pthread_create(&thread, NULL, do_work, waits) == 0) {
        pthread_detach(thread);
        waits->started_by = getpid();
        waits->n_threads++;
    }
    return waits->n_threads > 0;
}

bool waits_add(struct waits *waits, wait_work *work, void *context, void *item)
{
    lock_take(&waits->lock);
    struct waiting *added = malloc(sizeof *added);
    bool taken = added != NULL && !waits->ending && has_thread(waits);
    if (!taken) {
        free(added);
    } else {
        *added = (struct waiting){NULL, work, context, item};
        *waits->end = added;
        waits->end = &added->next;
        waits->n_queued++;
        event_wake(&waits->came);
    }
    lock_drop(&waits->lock);
    return taken;
}

/* In a child of a fork there are no threads, and one of the parent's may have held the lock. */
static bool is_of_parent(const struct waits *waits)
{
    return waits->started_by != 0 && waits->started_by != getpid();
}

static void end(struct waits *waits, bool drop)
{
    if (is_of_parent(waits))
        return;
    lock_take(&waits->lock);
    waits->ending = true;
    for (struct waiting *dropped; drop && (dropped = take(waits)) != NULL; free(dropped))
        continue;
    event_wake_all(&waits->came);
    while (waits->n_threads > 0)
        event_wait(&waits->thread_left, &waits->lock);
    lock_drop(&waits->lock);
}

void waits_end(struct waits *waits)
{
    end(waits, false);
}

void waits_drop(struct waits *waits)
{
    end(waits, true);
}

void waits_free(struct waits *waits)
{
    if (!is_of_parent(waits)) {
        event_destroy(&waits->thread_left);
        event_destroy(&waits->came);
        lock_destroy(&waits->lock);
    }
    free(waits);
}
