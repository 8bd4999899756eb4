/* A copy whose writer runs out of memory: it fails, and no thread waits for the piece. */
#include "fs/lib/copy.h"

#include "base/arena.h"
#include "base/pool.h"
#include "tests/unit/check.h"

#include <string.h>
#include <unistd.h>

enum { LENGTH = 64 << 20, N_THREADS = 4, LONG = 20 /* seconds; what hangs fails */ };

static size_t n_left;

static bool take(void *context, const void *bytes, size_t length, struct error *error)
{
    if (n_left-- == 0)
        memory_exhausted(4711);
    return true;
}

static void test_lacking(const struct vfile *file, size_t n_before)
{
    struct error error;
    n_left = n_before;
    CHECK(!take_file(file, take, NULL, &error));
    CHECK_TEXT(error.message, "out of memory (4711 bytes wanted)");
}

int main(void)
{
    struct arena *arena = arena_new();
    struct span_list spans = {.arena = arena};
    struct error error;
    spans_add_zeros(&spans, LENGTH);
    const struct vfile file = vfile_of_spans(&spans, (struct origin){0});
    struct pool *pool = pool_new(N_THREADS);
    pool_share(pool);
    alarm(LONG);
    test_lacking(&file, 0);
    test_lacking(&file, 20);
    n_left = LENGTH;
    CHECK(take_file(&file, take, NULL, &error));
    pool_share(NULL);
    pool_free(pool);
    arena_free(arena);
    return check_done();
}
