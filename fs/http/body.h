/* Bodies of answers that are parts of files, read in blocks while they are sent.
 *
 * Bytes that are only copied are read on the thread of the connection. Blocks that are computed, or that may wait for a
 * remote source, are made by threads of waits.h, ahead of the client. A connection whose block is not ready is
 * suspended, and its thread serves others.
 *
 * Clients may stop reading, so memory is bounded for all together: the first BODY_LARGE bodies have blocks of
 * BODY_BLOCK bytes, of which BODY_MADE are in memory at once; others have one small block each. With MAX_CONNECTIONS
 * of server.c this is less than 64 MiB. */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/libmicrohttpd.h"
#include "fs/http/metrics.h"
#include "fs/tree/read_ahead.h"
#include "fs/tree/waits.h"

/* What bodies share; it outlives them. */
struct bodies {
    struct waits *waits;
    struct read_ahead *ahead; /* of remote sources */
    struct metrics *metrics;
    atomic_uint n_large, n_blocks; /* large bodies, and their blocks in memory */
    atomic_bool ending;            /* set when the server ends: no block is made any more */
};

/* The blocks of a body that may be with `waits` at once. Three leave two cores idle for 2 % more of the time, since
 * they end at about the same moment and the client takes them one after another. More than four only need more cache.
 */
enum {
    BODY_BLOCKS = 4,
    BODY_LARGE = 16,
    BODY_MADE = 24,
    BODY_BLOCK = 1 << 20,
    BODY_SMALL_BLOCK = 16 << 10,
};

/* Makes a response with the part of the file that the answer chooses, and takes the answer. `target` is the path of the
 * request, for messages. NULL if memory runs out. */
struct MHD_Response *body_response(struct bodies *bodies, struct MHD_Connection *connection, struct answer *answer,
                                   const char *target);
