/* Requests that wait for files to be planned. They wait here instead of with a worker: a slow file delays only requests
 * for it. One thread looks after all of them; it starts with the first request. */
#pragma once

#include "fs/tree/tree.h"

#include <fuse_lowlevel.h>

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
