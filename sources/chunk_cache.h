/* The cache of decoded chunks, such as inflated ones: one for the process, to bound the memory of the process.
 *
 * A chunk belongs to its place, a pointer of the code that made it; the cache guards that pointer and sets it to NULL
 * when it drops the chunk. The least recently used chunks are dropped first, pinned ones never. All functions may be
 * called from any thread. */
#pragma once

#include "base/attempt.h"
#include "base/last_use.h"

#include <stdbool.h>
#include <stddef.h>

enum { CHUNK_CACHE_BYTES = 256 * 1024 * 1024 };

struct chunk {
    struct attempt_part
        part; /* until it is published: an attempt that fails gives it up, for others wait for its room */
    struct chunk **place;
    struct last_use use; /* by readers copying from it */
    size_t length;
    unsigned char bytes[];
};

/* Returns a chunk to fill, and then to publish or give up. Waits for room if all chunks are in use; a chunk larger than
 * the cache waits until it is alone. The caller has no other chunk, and waits for none until it publishes this one. */
struct chunk *chunk_reserve(size_t length);
void chunk_give_up(struct chunk *chunk);

/* Hands over a filled chunk. If the place has a chunk already, that one stays and this one is given up. */
void chunk_publish(struct chunk *chunk, struct chunk **place);

/* Returns the chunk of a place, which stays until it is unpinned, or NULL. */
struct chunk *chunk_pin(struct chunk **place);
void chunk_unpin(struct chunk *chunk);

/* Drops the chunks of `n` places that are no longer read. */
void chunk_drop_all(struct chunk **places, size_t n);
