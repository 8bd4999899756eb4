/* Reads in turn: a limited number run at once, and the others wait here instead of with a worker, so that a worker is
 * always free for names and attributes. A thread that has finished a read takes the next one: no thread is woken. */
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
void read_queue_free(struct read_queue *queue); /* it must be empty */

/* Returns true if the read may begin now, even beyond the limit if there is no memory to queue it; false if it was
 * queued for another thread. */
bool read_queue_enter(struct read_queue *queue, const struct queued_read *read);

/* Call it after each read. Gets the next read of this thread; returns false if none waits. */
bool read_queue_next(struct read_queue *queue, struct queued_read *ret_read);
