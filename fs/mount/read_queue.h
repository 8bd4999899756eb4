/* Reads in turn: only so many at once, the others wait here instead of with a worker, so that a worker is always free
 * for names and attributes. Who has finished a read takes the next one: nobody is woken for it. */
#pragma once

#include <fuse_lowlevel.h>
#include <stdbool.h>

struct queued_read {
    fuse_req_t req;
    fuse_ino_t ino;
    size_t size;
    off_t offset;
};

struct read_queue;

struct read_queue *read_queue_new(size_t most_at_once);
void read_queue_free(struct read_queue *queue);

/* True where the read may begin now, also beyond the limit where no memory is left to queue it; false where it was
 * queued, and is another thread's. */
bool read_queue_enter(struct read_queue *queue, const struct queued_read *read);

/* After a read: true, and the next one, where one waits; false where the thread is done. */
bool read_queue_next(struct read_queue *queue, struct queued_read *ret_read);
