/* Bodies of answers that are parts of files, read in blocks while they are sent.
 *
 * A block is computed on the thread of its connection. If a source is remote, the connection is suspended first, until
 * a thread of waits.h has the block's bytes; the thread of the connection then serves others. */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/metrics.h"
#include "fs/tree/read_ahead.h"
#include "fs/tree/waits.h"

#include <microhttpd.h>

/* What bodies share; it outlives them. */
struct bodies {
    struct waits *waits;
    struct read_ahead *ahead;
    struct metrics *metrics;
};

/* A connection that work on another thread resumes. Work for waits_add() begins with one. */
struct suspended {
    struct MHD_Connection *connection;
};

/* Resumes the connection of a `struct suspended`; drops its work. */
void suspended_resume(void *suspended);

/* Makes a response with the part of the file that the answer chooses, and takes the answer. `target` is the path of the
 * request, for messages. NULL if memory runs out. */
struct MHD_Response *body_response(struct bodies *bodies, struct MHD_Connection *connection, struct answer *answer,
                                   const char *target);
