#include "sources/chunk_cache.h"

#include "base/arena.h"
#include "base/lock.h"

#include <stdlib.h>

static struct {
    struct lock lock;
    struct event unpinned;
    struct last_uses uses;
    size_t n_bytes; /* of all chunks, reserved ones included */
} cache = {.lock = LOCK_INITIALIZER, .unpinned = EVENT_INITIALIZER};

static void drop_chunk(struct chunk *chunk)
{
    last_uses_take_out(&cache.uses, &chunk->use);
    *chunk->place = NULL;
    cache.n_bytes -= sizeof *chunk + chunk->length;
    free(chunk);
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
        struct chunk *chunk = last_uses_idle(&cache.uses);
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
    *chunk = (struct chunk){.use.thing = chunk, .length = length};
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
        last_uses_add(&cache.uses, &chunk->use);
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
        chunk->use.n_users++;
        last_uses_renew(&cache.uses, &chunk->use);
    }
    lock_drop(&cache.lock);
    return chunk;
}

void chunk_unpin(struct chunk *chunk)
{
    lock_take(&cache.lock);
    chunk->use.n_users--;
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
