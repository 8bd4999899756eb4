#include "sources/chunk_cache.h"

#include "base/arena.h"
#include "base/lock.h"

#include <stdlib.h>

static struct {
    struct lock lock;
    struct event unpinned;
    struct chunk *newest, *oldest;
    size_t n_bytes; /* of all chunks, reserved ones included */
} cache = {.lock = LOCK_INITIALIZER, .unpinned = EVENT_INITIALIZER};

static void unlink_chunk(struct chunk *chunk)
{
    *(chunk->newer ? &chunk->newer->older : &cache.newest) = chunk->older;
    *(chunk->older ? &chunk->older->newer : &cache.oldest) = chunk->newer;
}

static void link_newest(struct chunk *chunk)
{
    chunk->newer = NULL;
    chunk->older = cache.newest;
    *(cache.newest ? &cache.newest->newer : &cache.oldest) = chunk;
    cache.newest = chunk;
}

static void drop_chunk(struct chunk *chunk)
{
    unlink_chunk(chunk);
    *chunk->place = NULL;
    cache.n_bytes -= sizeof *chunk + chunk->length;
    free(chunk);
}

static struct chunk *oldest_unpinned(void)
{
    struct chunk *chunk = cache.oldest;
    while (chunk != NULL && chunk->pins > 0)
        chunk = chunk->newer;
    return chunk;
}

static void free_room(size_t n_bytes)
{
    lock_take(&cache.lock);
    cache.n_bytes -= n_bytes;
    event_wake_all(&cache.unpinned);
    lock_drop(&cache.lock);
}

/* The part is the chunk's first member. */
static void give_up_part(struct attempt_part *part)
{
    chunk_give_up((struct chunk *)part);
}

/* Drops unpinned chunks, or waits for one, until there is room, or no other chunk. */
struct chunk *chunk_reserve(size_t length)
{
    size_t n_bytes = sizeof(struct chunk) + length;
    lock_take(&cache.lock);
    while (cache.n_bytes > 0 && cache.n_bytes + n_bytes > CHUNK_CACHE_BYTES) {
        struct chunk *chunk = oldest_unpinned();
        if (chunk != NULL)
            drop_chunk(chunk);
        else
            event_wait(&cache.unpinned, &cache.lock);
    }
    cache.n_bytes += n_bytes;
    lock_drop(&cache.lock);
    struct chunk *chunk = malloc(n_bytes);
    if (chunk == NULL) {
        free_room(n_bytes);
        memory_exhausted(n_bytes);
    }
    *chunk = (struct chunk){.length = length};
    attempt_add(&chunk->part, give_up_part);
    return chunk;
}

void chunk_give_up(struct chunk *chunk)
{
    attempt_remove(&chunk->part);
    free_room(sizeof *chunk + chunk->length);
    free(chunk);
}

void chunk_publish(struct chunk *chunk, struct chunk **place)
{
    lock_take(&cache.lock);
    bool first = *place == NULL;
    if (first) {
        attempt_remove(&chunk->part);
        chunk->place = place;
        *place = chunk;
        link_newest(chunk);
        event_wake_all(&cache.unpinned);
    }
    lock_drop(&cache.lock);
    if (!first)
        chunk_give_up(chunk);
}

struct chunk *chunk_pin(struct chunk **place)
{
    lock_take(&cache.lock);
    struct chunk *chunk = *place;
    if (chunk != NULL) {
        chunk->pins++;
        unlink_chunk(chunk);
        link_newest(chunk);
    }
    lock_drop(&cache.lock);
    return chunk;
}

void chunk_unpin(struct chunk *chunk)
{
    lock_take(&cache.lock);
    chunk->pins--;
    event_wake_all(&cache.unpinned);
    lock_drop(&cache.lock);
}

void chunk_drop_all(struct chunk **places, size_t n)
{
    lock_take(&cache.lock);
    for (size_t i = 0; i < n; i++)
        if (places[i] != NULL)
            drop_chunk(places[i]);
    lock_drop(&cache.lock);
}
