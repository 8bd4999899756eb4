#include "fs/mount/waiting_room.h"

#include "base/arena.h"
#include "base/lock.h"

#include <stdlib.h>

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
