#include "fs/mount/waiting_room.h"

#include "base/arena.h"
#include "base/lock.h"
#include "base/system.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOOK_MILLISECONDS = 50 }; /* between checks for interrupted requests and ended patience */

struct waiter {
    struct waiter *next;
    struct waiting_request request;
    char *name;            /* the copy of the request's name */
    int64_t patience_ends; /* milliseconds of CLOCK_MONOTONIC */
};

struct waiting_room {
    struct tree *tree;
    waiting_answer *answer;
    struct lock lock;
    struct event changed;
    struct waiter *waiters;
    pthread_t thread;
    unsigned changes; /* counts events that may let a request be answered */
    bool has_thread, closing;
};

static struct timespec after(long milliseconds)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_nsec += milliseconds * 1000000L;
    time.tv_sec += time.tv_nsec / 1000000000L;
    time.tv_nsec %= 1000000000L;
    return time;
}

static int64_t now(void)
{
    struct timespec time = after(0);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void planned(void *context)
{
    struct waiting_room *room = context;
    lock_take(&room->lock);
    room->changes++;
    event_wake(&room->changed);
    lock_drop(&room->lock);
}

struct waiting_room *waiting_room_new(struct tree *tree, waiting_answer *answer)
{
    struct waiting_room *room = memory_alloc(sizeof *room);
    *room = (struct waiting_room){.tree = tree, .answer = answer};
    lock_init(&room->lock);
    event_init(&room->changed);
    tree_on_planned(tree, planned, room);
    return room;
}

/* Answers a request if it can be answered; returns false if it must go on waiting. */
static bool attend_to(const struct waiting_room *room, const struct waiter *waiter)
{
    const struct waiting_request *request = &waiter->request;
    bool patient = now() < waiter->patience_ends || !tree_is_open(room->tree, request->directory);
    if (tree_prepare(room->tree, request->directory, request->name) || !patient)
        room->answer(request);
    else if (fuse_req_interrupted(request->req))
        fuse_reply_err(request->req, EINTR);
    else
        return false;
    return true;
}

static void dismiss(struct waiter *waiter)
{
    free(waiter->name);
    free(waiter);
}

/* The room's thread. Gives answers without the lock, because workers must not wait for them. */
static void *look_after(void *context)
{
    struct waiting_room *room = context;
    lock_take(&room->lock);
    while (!room->closing) {
        struct waiter *waiters = room->waiters, *still = NULL, **end = &still;
        unsigned seen = room->changes;
        room->waiters = NULL;
        lock_drop(&room->lock);
        for (struct waiter *next; waiters != NULL; waiters = next) {
            next = waiters->next;
            if (attend_to(room, waiters)) {
                dismiss(waiters);
            } else {
                *end = waiters;
                end = &waiters->next;
            }
        }
        lock_take(&room->lock);
        *end = room->waiters;
        room->waiters = still;
        struct timespec look = after(LOOK_MILLISECONDS);
        if (still == NULL && !room->closing && room->changes == seen)
            event_wait(&room->changed, &room->lock);
        else if (!room->closing && room->changes == seen)
            event_wait_until(&room->changed, &room->lock, &look);
    }
    lock_drop(&room->lock);
    return NULL;
}

bool waiting_room_add(struct waiting_room *room, const struct waiting_request *request)
{
    lock_take(&room->lock);
    if (!room->has_thread)
        room->has_thread = pthread_create(&room->thread, NULL, look_after, room) == 0;
    struct waiter *waiter = malloc(sizeof *waiter);
    char *name = request->name != NULL ? strdup(request->name) : NULL;
    bool taken = room->has_thread && waiter != NULL && (name != NULL || request->name == NULL);
    if (!taken) {
        free(waiter);
        free(name);
    } else {
        *waiter = (struct waiter){.next = room->waiters, .request = *request, .name = name, .patience_ends = INT64_MAX};
        waiter->request.name = name;
        if (name == NULL)
            waiter->patience_ends = now() + LISTING_PATIENCE;
        room->waiters = waiter;
        room->changes++;
        event_wake(&room->changed);
    }
    lock_drop(&room->lock);
    return taken;
}

void waiting_room_free(struct waiting_room *room)
{
    lock_take(&room->lock);
    room->closing = true;
    event_wake(&room->changed);
    lock_drop(&room->lock);
    if (room->has_thread)
        pthread_join(room->thread, NULL);
    tree_on_planned(room->tree, NULL, NULL);
    for (struct waiter *waiter = room->waiters, *next; waiter != NULL; waiter = next) {
        next = waiter->next;
        fuse_reply_err(waiter->request.req, ENOTCONN);
        dismiss(waiter);
    }
    event_destroy(&room->changed);
    lock_destroy(&room->lock);
    free(room);
}

/* Reads. */

struct waiting_read {
    struct waiting_read *next;
    struct queued_read read;
};

struct read_queue {
    struct lock lock;
    size_t n_reading, most_at_once;
    struct waiting_read *first, **end; /* empty unless `most_at_once` reads run */
};

struct read_queue *read_queue_new(size_t most_at_once)
{
    struct read_queue *queue = memory_alloc(sizeof *queue);
    *queue = (struct read_queue){.most_at_once = most_at_once, .end = &queue->first};
    lock_init(&queue->lock);
    return queue;
}

void read_queue_free(struct read_queue *queue)
{
    lock_destroy(&queue->lock);
    free(queue);
}

bool read_queue_enter(struct read_queue *queue, const struct queued_read *read)
{
    lock_take(&queue->lock);
    struct waiting_read *waiting = queue->n_reading < queue->most_at_once ? NULL : malloc(sizeof *waiting);
    bool may_begin = waiting == NULL; /* also without memory to wait in */
    if (may_begin) {
        queue->n_reading++;
    } else {
        *waiting = (struct waiting_read){NULL, *read};
        *queue->end = waiting;
        queue->end = &waiting->next;
    }
    lock_drop(&queue->lock);
    return may_begin;
}

bool read_queue_next(struct read_queue *queue, struct queued_read *ret_read)
{
    lock_take(&queue->lock);
    struct waiting_read *waiting = queue->first;
    if (waiting == NULL) {
        queue->n_reading--;
    } else {
        queue->first = waiting->next;
        if (queue->first == NULL)
            queue->end = &queue->first;
        *ret_read = waiting->read;
    }
    lock_drop(&queue->lock);
    free(waiting);
    return waiting != NULL;
}
