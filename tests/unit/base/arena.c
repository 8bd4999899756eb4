/* What an arena hands out: zeroed, aligned, apart from all else, what it releases besides
 * its memory, and how much it takes. */
#include "base/arena.h"

#include "base/attempt.h"
#include "base/process.h"
#include "tests/unit/check.h"
#include "tests/unit/sanitized.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__GLIBC__)
enum { IS_MALLOC_OF_GLIBC = !IS_SANITIZED };
#else
enum { IS_MALLOC_OF_GLIBC = 0 };
#endif

/* Allocated memory is not zero by luck: what was freed before is dirty. */
static void make_free_memory_dirty(void)
{
    enum { N_BLOCKS = 64 };
    void *blocks[N_BLOCKS];
    for (size_t i = 0; i < N_BLOCKS; i++) {
        blocks[i] = malloc(80 * 1024);
        memset(blocks[i], 0xa5, 80 * 1024);
    }
    for (size_t i = 0; i < N_BLOCKS; i++)
        free(blocks[i]);
}

static bool is_filled(const unsigned char *bytes, size_t size, unsigned char byte)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != byte)
            return false;
    return true;
}

/* Pieces of all sizes around those of a chunk and of a quarter of one: small after big and big after small. */
static const size_t sizes[] = {1,     7, 8,     9,     0,     16383, 16384, 16385, 3,      65535, 65536,
                               65537, 1, 40000, 20000, 16377, 100,   5,     13,    200000, 63,    64};
enum { N_SIZES = sizeof sizes / sizeof *sizes, N_PIECES = 20 * N_SIZES };

static void zeroed_aligned_and_apart(void)
{
    unsigned char *pieces[N_PIECES];
    bool zeroed = true, aligned = true, kept = true;
    make_free_memory_dirty();
    struct arena *arena = arena_new();
    for (size_t i = 0; i < N_PIECES; i++) {
        size_t size = sizes[i % N_SIZES];
        pieces[i] = arena_alloc(arena, size);
        aligned &= (uintptr_t)pieces[i] % 8 == 0;
        zeroed &= is_filled(pieces[i], size, 0);
        memset(pieces[i], (int)(1 + i % 255), size);
    }
    for (size_t i = 0; i < N_PIECES; i++)
        kept &= is_filled(pieces[i], sizes[i % N_SIZES], (unsigned char)(1 + i % 255));
    CHECK(zeroed);
    CHECK(aligned);
    CHECK_NAMED(kept, "no piece overlaps another");
    arena_free(arena);
}

/* A chunk that is not full stays in use after a big piece, which gets memory of its own. */
static void big_pieces(void)
{
    struct arena *arena = arena_new();
    unsigned char *small = arena_alloc(arena, 8);
    arena_alloc(arena, 1 << 20);
    CHECK((unsigned char *)arena_alloc(arena, 8) == small + 8);
    arena_free(arena);
    arena = arena_new();
    memset(arena_alloc(arena, 1 << 20), 1, 1 << 20); /* the first piece of all */
    CHECK(is_filled(arena_alloc(arena, 100), 100, 0));
    arena_free(arena);
}

/* Pieces that begin with a huge page, in memory that was written to before. */
static void huge_pieces(void)
{
    enum { HUGE_PAGE = 2 << 20, SIZE = HUGE_PAGE + 5000 };
    for (int round = 0; round < 3; round++) {
        struct arena *arena = arena_new();
        unsigned char *first = arena_alloc(arena, SIZE), *second = arena_alloc(arena, SIZE);
        CHECK((uintptr_t)first % HUGE_PAGE < 64 && (uintptr_t)second % HUGE_PAGE < 64);
        CHECK(is_filled(first, SIZE, 0));
        memset(first, 1, SIZE);
        CHECK(is_filled(second, SIZE, 0));
        memset(second, 2, SIZE);
        CHECK(is_filled(first, SIZE, 1));
        arena_free(arena);
    }
}

/* Pieces that fill the first chunk to its end, and one more. */
static void full_chunk(void)
{
    enum { N_PIECES_OF_CHUNK = 1024 / 8 };
    struct arena *arena = arena_new();
    unsigned char *first = arena_alloc(arena, 8), *last = first;
    for (size_t i = 1; i < N_PIECES_OF_CHUNK; i++)
        last = arena_alloc(arena, 8);
    CHECK(last == first + (N_PIECES_OF_CHUNK - 1) * 8);
    CHECK((unsigned char *)arena_alloc(arena, 8) != last + 8);
    arena_free(arena);
}

/* Arenas of a few texts are many: one for each file of a server's list. */
static void small_arenas(void)
{
    struct arena *arena = arena_new();
    arena_strdup(arena, "a name");
    CHECK(arena_bytes(arena) <= 2048);
    for (size_t i = 0; i < 100000; i++)
        arena_alloc(arena, 8);
    CHECK(arena_bytes(arena) < 1000000);
    arena_free(arena);
}

static void copies(void)
{
    struct arena *arena = arena_new();
    char *text = arena_strdup(arena, "text");
    CHECK_TEXT(text, "text");
    CHECK_TEXT(arena_strndup(arena, "longer", 4), "long");
    CHECK_TEXT(arena_strndup(arena, NULL, 0), "");
    CHECK_TEXT(arena_printf(arena, "%s %d", text, -12), "text -12");
    CHECK(memcmp(arena_copy(arena, "\0a\0b", 4), "\0a\0b", 4) == 0);
    CHECK(is_filled(arena_array(arena, 33, 3), 99, 0));
    arena_free(arena);
}

static const struct {
    const char *name;
    size_t count, size, wanted;
} too_large[] = {
    {"one byte more than half of what can be addressed", 1, SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1},
    {"sizes that are 0 once they are rounded up", 1, SIZE_MAX, SIZE_MAX},
    {"and the smallest of them", 1, SIZE_MAX - 6, SIZE_MAX - 6},
    {"a product that is 0 once it is cut", SIZE_MAX / 4 + 1, 4, SIZE_MAX},
    {"a product that is small once it is cut", SIZE_MAX / 4 + 2, 4, SIZE_MAX},
};

static void allocate_too_much(void *context)
{
    const size_t *row = context;
    struct arena *arena = arena_new();
    memset(arena_array(arena, too_large[*row].count, too_large[*row].size), 0, 1);
    arena_free(arena);
}

static void overflow(void)
{
    for (size_t i = 0; i < sizeof too_large / sizeof *too_large; i++)
        CHECK_NAMED(attempt_lacking(allocate_too_much, &i) == too_large[i].wanted, too_large[i].name);
}

static char order[8];

static void note(void *context)
{
    strncat(order, context, 1);
}

static void releases(void)
{
    struct arena *arena = arena_new();
    arena_on_free(arena, note, arena_strdup(arena, "a"));
    memset(arena_alloc(arena, 1 << 20), 1, 1 << 20);
    arena_on_free(arena, note, arena_strdup(arena, "b"));
    arena_adopt(arena, malloc(1 << 20), 1 << 20);
    CHECK_TEXT(order, "");
    CHECK(arena_bytes(arena) >= 2 << 20 && arena_bytes(arena) < 3 << 20);
    arena_free(arena);
    CHECK_TEXT(order, "ba");
    arena_free(NULL);
}

/* Elements stay as arrays grow, also from fewer elements than there were. */
static void growing_arrays(void)
{
    struct arena *arena = arena_new();
    uint64_t *heap = NULL, *pieces = NULL;
    bool same = true;
    for (size_t count = 0; count < 1000; count++) {
        heap = memory_grow(heap, count, sizeof *heap);
        pieces = arena_grow(arena, pieces, count, sizeof *pieces);
        heap[count] = pieces[count] = count;
    }
    for (size_t count = 100; count < 1000; count++) {
        heap = memory_grow(heap, count, sizeof *heap);
        heap[count] = count;
    }
    for (size_t i = 0; i < 1000; i++)
        same &= heap[i] == i && pieces[i] == i;
    CHECK(same);
    free(heap);
    arena_free(arena);
}

/* Returns the memory that the process occupies, in bytes. */
static size_t resident(void)
{
    size_t size = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%zu %zu", &size, &pages) != 2)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

enum { WORK = 12 << 20 }; /* bytes, fewer than free() keeps at the end of a heap */

/* Sets *context if most of the memory of work is returned to the system after it. */
static void *work_and_trim(void *context)
{
    enum { PIECE = 64 << 10, N_TRIMMED = WORK / PIECE };
    void *pieces[N_TRIMMED];
    bool *returned = context;
    memory_trim();
    for (size_t i = 0; i < N_TRIMMED; i++) {
        pieces[i] = memory_alloc(PIECE);
        memset(pieces[i], 1, PIECE);
    }
    for (size_t i = 0; i < N_TRIMMED; i++)
        free(pieces[i]);
    size_t before = resident();
    memory_trim();
    *returned = resident() + WORK / 2 < before;
    return NULL;
}

static void trimming(void)
{
    static const char name[] = "a thread that trims returns the end of its own heap, too";
    bool returned = false;
    pthread_t thread;
    if (!IS_MALLOC_OF_GLIBC) {
        check_skip(name, "another allocator than glibc's");
        return;
    }
    process_allow(PROCESS_ALLOCATOR);
    if (pthread_create(&thread, NULL, work_and_trim, &returned) == 0)
        pthread_join(thread, NULL);
    CHECK_NAMED(returned, name);
}

int main(void)
{
    zeroed_aligned_and_apart();
    big_pieces();
    huge_pieces();
    full_chunk();
    small_arenas();
    copies();
    overflow();
    growing_arrays();
    releases();
    trimming();
    return check_done();
}
