#include "base/arena.h"

#include "base/attempt.h"
#include "base/process.h"
#include "base/report.h"
#include "base/system.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

enum { FIRST_BYTES = 1024, CHUNK_BYTES = 64 * 1024, ALIGNMENT = 8 };
enum { HUGE_PAGE = 2 * 1024 * 1024 }; /* so much memory is worth huge pages, if it begins with one */

struct chunk {
    struct chunk *previous;
    void *memory; /* from calloc(): before the chunk, if it begins with a huge page */
    size_t used, capacity;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

struct release {
    struct release *previous;
    void (*release)(void *context);
    void *context;
};

struct arena {
    struct attempt_part part; /* in the attempt that made the arena */
    struct chunk *last;
    size_t next_bytes;        /* of the next chunk: twice the last one's, up to CHUNK_BYTES */
    struct release *releases; /* in the arena itself */
    size_t n_adopted;         /* bytes */
};

_Noreturn void memory_exhausted(size_t size)
{
    attempt_fail(size);
    report("out of memory (%zu bytes wanted)", size);
    if (process_allows(PROCESS_EXIT))
        _exit(1); /* exit() waits for threads, which may wait for this one, and writes what another is writing */
    abort();
}

void *memory_try(void *memory, size_t size)
{
    bool is_huge = size >= HUGE_PAGE, is_new = memory == NULL;
    void *resized = is_huge && is_new ? aligned_alloc(HUGE_PAGE, (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE)
                                      : realloc(memory, size ? size : 1);
    if (resized != NULL && is_huge)
        system_want_huge_pages(resized, size);
    return resized;
}

void *memory_alloc(size_t size)
{
    void *memory = memory_try(NULL, size);
    if (memory == NULL)
        memory_exhausted(size);
    return memory;
}

void *memory_alloc_aligned(size_t alignment, size_t size)
{
    void *memory = aligned_alloc(alignment, size);
    if (memory == NULL)
        memory_exhausted(size);
    return memory;
}

void *memory_resize(void *memory, size_t size)
{
    void *resized = memory_try(memory, size);
    if (resized == NULL)
        memory_exhausted(size);
    return resized;
}

/* Reports whether an array that memory_grow() or arena_grow() made has no room after `count` elements. */
static bool is_full(size_t count)
{
    return (count & (count - 1)) == 0;
}

void *memory_grow(void *array, size_t count, size_t element_size)
{
    return is_full(count) ? memory_resize(array, (count != 0 ? 2 * count : 1) * element_size) : array;
}

void *arena_grow(struct arena *arena, void *array, size_t count, size_t element_size)
{
    if (!is_full(count))
        return array;
    void *larger = arena_array(arena, count != 0 ? 2 * count : 1, element_size);
    return count != 0 ? memcpy(larger, array, count * element_size) : larger;
}

void memory_trim(void)
{
#if defined(__GLIBC__)
    enum {
        LARGE = 16 * 1024 * 1024, /* free() keeps no block larger than reads need */
        SMALL = 128 * 1024,       /* but enough for it to give back the end of a heap */
    };
    if (!process_allows(PROCESS_ALLOCATOR))
        return;
    mallopt(M_MMAP_THRESHOLD, LARGE);
    mallopt(M_TRIM_THRESHOLD, SMALL);
    void *volatile block = malloc(SMALL); /* volatile, or the compiler leaves both calls out */
    free(block);
    mallopt(M_TRIM_THRESHOLD, LARGE);
    malloc_trim(0); /* which leaves the ends of the heaps of other threads than the first as they are */
#endif
}

/* The part is the arena's first member. */
static void free_part(struct attempt_part *part)
{
    arena_free((struct arena *)part);
}

char *memory_strndup(const char *text, size_t length)
{
    char *copy = strndup(text, length);
    if (copy == NULL)
        memory_exhausted(length + 1);
    return copy;
}

char *memory_strdup(const char *text)
{
    return memory_strndup(text, strlen(text));
}

struct arena *arena_new_shared(void)
{
    struct arena *arena = memory_alloc(sizeof *arena);
    *arena = (struct arena){.next_bytes = FIRST_BYTES};
    return arena;
}

struct arena *arena_new(void)
{
    struct arena *arena = arena_new_shared();
    attempt_add(&arena->part, free_part);
    return arena;
}

void arena_free(struct arena *arena)
{
    if (arena == NULL)
        return;
    attempt_remove(&arena->part);
    for (struct release *release = arena->releases; release != NULL; release = release->previous)
        release->release(release->context);
    for (struct chunk *chunk = arena->last; chunk != NULL;) {
        struct chunk *previous = chunk->previous;
        free(chunk->memory);
        chunk = previous;
    }
    free(arena);
}

static struct chunk *chunk_new(size_t capacity)
{
    size_t size = sizeof(struct chunk) + capacity, skipped = 0;
    bool is_huge = capacity >= HUGE_PAGE;
    unsigned char *memory = calloc(1, is_huge ? size + HUGE_PAGE : size);
    if (memory == NULL)
        memory_exhausted(capacity);
    if (is_huge) { /* calloc() writes none of so much memory */
        skipped = -(uintptr_t)memory % HUGE_PAGE;
        system_want_huge_pages(memory + skipped, size);
    }
    struct chunk *chunk = (struct chunk *)(memory + skipped);
    chunk->memory = memory;
    chunk->capacity = capacity;
    return chunk;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        memory_exhausted(size);
    size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    struct chunk *last = arena->last;
    if (last != NULL && last->capacity - last->used >= size) {
        void *memory = last->bytes + last->used;
        last->used += size;
        return memory;
    }
    struct chunk *chunk = chunk_new(size > arena->next_bytes / 4 ? size : arena->next_bytes);
    chunk->used = size;
    arena->next_bytes = arena->next_bytes < CHUNK_BYTES ? 2 * arena->next_bytes : CHUNK_BYTES;
    if (last != NULL && chunk->capacity == size) { /* a big piece follows the open chunk, which stays in use */
        chunk->previous = last->previous;
        last->previous = chunk;
    } else {
        chunk->previous = last;
        arena->last = chunk;
    }
    return chunk->bytes;
}

size_t arena_bytes(const struct arena *arena)
{
    size_t n_bytes = sizeof *arena + arena->n_adopted;
    for (const struct chunk *chunk = arena->last; chunk != NULL; chunk = chunk->previous)
        n_bytes += sizeof *chunk + chunk->capacity;
    return n_bytes;
}

void arena_on_free(struct arena *arena, void (*release)(void *context), void *context)
{
    struct release *entry = arena_alloc(arena, sizeof *entry);
    *entry = (struct release){arena->releases, release, context};
    arena->releases = entry;
}

void arena_adopt(struct arena *arena, void *memory, size_t size)
{
    arena_on_free(arena, free, memory);
    arena->n_adopted += size;
}

void *arena_array(struct arena *arena, size_t count, size_t element_size)
{
    size_t size;
    if (__builtin_mul_overflow(count, element_size, &size))
        memory_exhausted(SIZE_MAX);
    return arena_alloc(arena, size);
}

void *arena_copy(struct arena *arena, const void *bytes, size_t size)
{
    void *copy = arena_alloc(arena, size);
    if (size != 0)
        memcpy(copy, bytes, size);
    return copy;
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);
    if (length != 0)
        memcpy(copy, text, length);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}
