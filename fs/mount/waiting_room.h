/* Requests that wait for files to be planned. They wait here, and not with a worker: one slow file holds up only those
 * who ask for it. One thread looks after them all; it starts with the first. */
#pragma once

#include "fs/tree/tree.h"

#include <fuse_lowlevel.h>

struct waiting_request {
    fuse_req_t req;
    node_id directory;
    const char *name; /* what is looked up in it; NULL: it is listed */
    size_t size;      /* for a listing */
    off_t offset;
    bool plus;
};

struct waiting_room;

/* `answer` is called, on the room's thread, once nothing that the request needs is being planned any more; for a
 * listing also after LISTING_PATIENCE, once the names are known: it then shows those of what is still being planned. A
 * request that is interrupted is answered with EINTR. */
enum { LISTING_PATIENCE = 2 }; /* seconds */
typedef void waiting_answer(const struct waiting_request *request);
struct waiting_room *waiting_room_new(struct tree *tree, waiting_answer *answer);

/* Ends the thread; who still waits gets ENOTCONN. No request may be added any more, and no plan may begin. */
void waiting_room_free(struct waiting_room *room);

/* Takes the request, and copies its name. False where there can be no thread, or no memory: it is not taken. */
bool waiting_room_add(struct waiting_room *room, const struct waiting_request *request);
