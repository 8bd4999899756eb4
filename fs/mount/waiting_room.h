/* Requests that wait for files to be planned. They wait here instead of with a worker: a slow file delays only requests
 * for it. One thread looks after all of them; it starts with the first request. */
#pragma once

#include "fs/tree/tree.h"

#include <fuse_lowlevel.h>
#include <stdbool.h>

struct waiting_request {
    fuse_req_t req;
    node_id directory;
    const char *name; /* the name to look up in it; NULL: list it */
    size_t size;      /* for a listing */
    off_t offset;
    bool plus;
};

struct waiting_room;

/* Answers a request. Called on the room's thread, without locks, when all plans that the request needs have ended; for
 * a listing also after LISTING_PATIENCE, once the directory's names are known: it then includes files that are still
 * being planned. The room answers interrupted requests with EINTR. */
enum { LISTING_PATIENCE = 2000 }; /* milliseconds */
typedef void waiting_answer(const struct waiting_request *request);
struct waiting_room *waiting_room_new(struct tree *tree, waiting_answer *answer);

/* Ends the thread, and answers ENOTCONN to all requests. No request may be added any more, and no plan may begin. */
void waiting_room_free(struct waiting_room *room);

/* Takes the request, and copies its name. Returns false, and does not take it, if no thread or no memory can be had. */
bool waiting_room_add(struct waiting_room *room, const struct waiting_request *request);

/* Reads in turn: a limited number run at once, and the others wait here instead of with a worker, so that a worker is
 * always free for names and attributes. A thread that has finished a read takes the next one: no thread is woken. */

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
