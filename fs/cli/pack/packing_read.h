/* Reading the extents of a file that is packed, and hashing each, and the file, in one pass. An extent that has room
 * beside the one before is read while that one is coded. */
#pragma once

#include "fs/cli/pack/packing.h"

#include <nettle/sha2.h>

struct reading {
    struct source *source;
    const struct packed_extent *extents;
    size_t n_extents;
    unsigned char *room; /* an extent that is larger is read again to be coded */
    size_t n_room;
    struct sha256_ctx file_hash; /* of the extents so far */

    /* The extent that is read. */
    size_t next;          /* its number */
    unsigned char *bytes; /* where it goes; NULL: it is not read yet */
    uint64_t n_read;
    struct sha256_ctx hash;
    bool failed;
    struct error error;
};

/* Begins to read; `extents` and `room` must live as long. */
struct reading reading_of(struct source *source, const struct packed_extent *extents, size_t n_extents,
                          unsigned char *room, size_t n_room);

/* Reads the rest of the next extent. `*ret_bytes` are its bytes, until the call after the next; NULL if it is larger
 * than the room. */
bool reading_next(struct reading *reading, struct digest *ret_digest, const unsigned char **ret_bytes,
                  struct error *error);

/* Reads some of the extent after that, if it has room, as a struct reading; on any thread, but for reading_next(). An
 * error waits for that. */
void reading_ahead(void *context);
