#include "formats/zip/chunk_cache.h"

#include "base/arena.h"

#include <pthread.h>
#include <stdlib.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t unpinned;
    struct chunk *newest, *oldest;
    size_t n_bytes; /* of all chunks, reserved ones included */
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER, .unpinned = PTHREAD_COND_INITIALIZER};

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
    pthread_mutex_lock(&cache.lock);
    cache.n_bytes -= n_bytes;
    pthread_cond_broadcast(&cache.unpinned);
    pthread_mutex_unlock(&cache.lock);
}

/* Drops unpinned chunks, or waits for one, until there is room, or no other chunk. */
struct chunk *chunk_reserve(size_t length)
{
    size_t n_bytes = sizeof(struct chunk) + length;
    pthread_mutex_lock(&cache.lock);
    while (cache.n_bytes > 0 && cache.n_bytes + n_bytes > CHUNK_CACHE_BYTES) {
        struct chunk *chunk = oldest_unpinned();
        if (chunk != NULL)
            drop_chunk(chunk);
        else
            pthread_cond_wait(&cache.unpinned, &cache.lock);
    }
    cache.n_bytes += n_bytes;
    pthread_mutex_unlock(&cache.lock);
    struct chunk *chunk = malloc(n_bytes);
    if (chunk == NULL) {
        free_room(n_bytes);
        memory_exhausted(n_bytes);
    }
    *chunk = (struct chunk){.length = length};
    return chunk;
}

void chunk_give_up(struct chunk *chunk)
{
    free_room(sizeof *chunk + chunk->length);
    free(chunk);
}

void chunk_publish(struct chunk *chunk, struct chunk **place)
{
    pthread_mutex_lock(&cache.lock);
    bool first = *place == NULL;
    if (first) {
        chunk->place = place;
        *place = chunk;
        link_newest(chunk);
        pthread_cond_broadcast(&cache.unpinned);
    }
    pthread_mutex_unlock(&cache.lock);
    if (!first)
        chunk_give_up(chunk);
}

struct chunk *chunk_pin(struct chunk **place)
{
    pthread_mutex_lock(&cache.lock);
    struct chunk *chunk = *place;
    if (chunk != NULL) {
        chunk->pins++;
        unlink_chunk(chunk);
        link_newest(chunk);
    }
    pthread_mutex_unlock(&cache.lock);
    return chunk;
}

void chunk_unpin(struct chunk *chunk)
{
    pthread_mutex_lock(&cache.lock);
    chunk->pins--;
    pthread_cond_broadcast(&cache.unpinned);
    pthread_mutex_unlock(&cache.lock);
}

void chunk_drop_all(struct chunk **places, size_t n)
{
    pthread_mutex_lock(&cache.lock);
    for (size_t i = 0; i < n; i++)
        if (places[i] != NULL)
            drop_chunk(places[i]);
    pthread_mutex_unlock(&cache.lock);
}
