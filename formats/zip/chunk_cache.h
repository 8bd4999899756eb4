/* The cache of inflated chunks: one for the process, because what is bounded is the memory of the process.
 *
 * A chunk belongs to the place that it was published at, a pointer of its maker; the pointer is guarded by the
 * cache and becomes NULL when the chunk is dropped. The least recently used go first, those that are pinned stay. All
 * may be called from any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { CHUNK_CACHE_BYTES = 256 * 1024 * 1024 };

struct chunk {
    struct chunk **place;
    struct chunk *newer, *older;
    unsigned pins; /* readers that copy from it now */
    size_t length;
    unsigned char bytes[];
};

/* A chunk for the caller to fill, once there is room for it: then to be published, or given up. */
struct chunk *chunk_reserve(size_t length);
void chunk_give_up(struct chunk *chunk);

/* Hands over a filled chunk. Where another thread was faster, its chunk stays and this one is given up. */
void chunk_publish(struct chunk *chunk, struct chunk **place);

/* The chunk of a place, which stays until it is unpinned; NULL where there is none. */
struct chunk *chunk_pin(struct chunk **place);
void chunk_unpin(struct chunk *chunk);

/* Drops what is published at `n` places that nobody reads from any more. */
void chunk_drop_all(struct chunk **places, size_t n);
