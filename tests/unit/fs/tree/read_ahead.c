/* What is named ahead of readers: bytes of sources, once each, and only where reads continue each other. */
#include "fs/tree/read_ahead.h"

#include "base/arena.h"
#include "base/attempt.h"
#include "sources/source.h"
#include "tests/unit/check.h"
#include "tests/unit/failing_memory.h"

#include <stdlib.h>

enum { MIB = 1 << 20, ROWS = 256, SOURCE_BYTES = 256 * MIB, GRANULE = 256 * 1024, N_GRANULES = SOURCE_BYTES / GRANULE };

/* A remote source that holds nothing: it counts how often each part was named. */
static unsigned n_named[N_GRANULES];
static uint64_t n_hinted, furthest;

static bool read_nothing(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    (void)context, (void)offset, (void)length, (void)out;
    return error_set(error, "nothing is read");
}

static void count_wanted(void *context, uint64_t offset, uint64_t length, bool urgent)
{
    (void)context;
    free(memory_alloc(1)); /* like a source that makes a request */
    for (uint64_t granule = offset / GRANULE; granule <= (offset + length - 1) / GRANULE; granule++)
        n_named[granule]++;
    n_hinted += urgent ? 0 : length;
    furthest = offset + length > furthest ? offset + length : furthest;
}

static bool have_at_once(void *context, uint64_t offset, uint64_t length, struct error *error)
{
    (void)context, (void)offset, (void)length, (void)error;
    return true;
}

static void leave(void *context)
{
    (void)context;
}

static const struct source_ops ops = {
    .read = read_nothing, .release = leave, .want = count_wanted, .wait = have_at_once};

static struct arena *arena;
static struct source *source;

static struct vfile file_of(const struct dtype *dtype)
{
    const uint64_t shape[] = {ROWS, SOURCE_BYTES / ROWS / sizeof(float)};
    struct span_list spans = {.arena = arena};
    spans_add_view(&spans, view_of_source(arena, source, 0, &f32_dtype, 2, shape), encoding_of(dtype));
    return vfile_of_spans(&spans, (struct origin){0});
}

static void forget(void)
{
    memset(n_named, 0, sizeof n_named);
    n_hinted = furthest = 0;
}

/* The bytes that are named with one read. */
static uint64_t hinted_by(struct read_ahead *ahead, const struct vfile *file, uint64_t offset, size_t length)
{
    uint64_t before = n_hinted;
    read_ahead_follow(ahead, 1, file, offset, length);
    return n_hinted - before;
}

static void grows(const struct vfile *file)
{
    struct read_ahead *ahead = read_ahead_new();
    forget();
    CHECK_NAMED(hinted_by(ahead, file, 0, MIB) == 0, "one read is no sequence");
    CHECK(hinted_by(ahead, file, MIB, MIB) == READ_AHEAD_FIRST && furthest == 6 * MIB);
    CHECK_NAMED(hinted_by(ahead, file, 2 * MIB, MIB) == 5 * MIB && furthest == 11 * MIB, "twice as many are named");
    for (uint64_t at = 3 * MIB; at < 30 * MIB; at += MIB)
        hinted_by(ahead, file, at, MIB);
    CHECK_NAMED(furthest <= 30 * MIB + READ_AHEAD_MOST && furthest >= 30 * MIB + READ_AHEAD_MOST / 4 * 3,
                "the window has a limit, and is refilled when a quarter has been read");
    CHECK_NAMED(hinted_by(ahead, file, 60 * MIB, MIB) > 0, "a read within the window continues");
    CHECK_NAMED(hinted_by(ahead, file, 59 * MIB, MIB) == 0, "a read that was overtaken names nothing");
    for (uint64_t at = 61 * MIB; at < SOURCE_BYTES; at += MIB)
        hinted_by(ahead, file, at, MIB);
    bool once = true;
    for (size_t i = 2 * MIB / GRANULE; i < N_GRANULES; i++)
        once &= n_named[i] == 1;
    CHECK_NAMED(once && n_hinted == SOURCE_BYTES - 2 * MIB, "each byte up to the end is named once");
    CHECK(hinted_by(ahead, file, 0, MIB) == 0);
    read_ahead_free(ahead);
}

static void tells_readers_apart(const struct vfile *file)
{
    struct read_ahead *ahead = read_ahead_new();
    forget();
    for (uint64_t i = 0; i < 20; i++)
        hinted_by(ahead, file, i * 37 % 20 * 12 * MIB, MIB / 8);
    CHECK_NAMED(n_hinted == 0, "reads at random places name nothing");
    read_ahead_free(ahead);
    ahead = read_ahead_new();
    for (uint64_t at = 0; at < 40; at++)
        for (uint64_t reader = 0; reader < 4; reader++)
            hinted_by(ahead, file, reader * 64 * MIB + at * MIB / 8, MIB / 8);
    bool shared = true;
    for (size_t reader = 0; reader < 4; reader++) {
        shared &= n_named[(reader * 64 + 16) * (MIB / GRANULE)] == 1;
        shared &= n_named[(reader * 64 + 23) * (MIB / GRANULE)] == 0;
    }
    CHECK_NAMED(shared, "four readers of one file share the window");
    CHECK(hinted_by(ahead, file, 100 * MIB, 1) == 0);
    read_ahead_follow(ahead, 2, file, 5 * MIB, MIB);
    CHECK_NAMED(n_named[200 * (MIB / GRANULE)] == 1, "other files have cursors of their own");
    read_ahead_free(ahead);
}

/* Each byte of Q4_0 needs 32 * 4 / 18 bytes of F32. */
static void counts_source_bytes(void)
{
    const struct vfile file = file_of(dtype_by_name("Q4_0"));
    struct read_ahead *ahead = read_ahead_new();
    forget();
    hinted_by(ahead, &file, 0, MIB / 8);
    uint64_t n_bytes = hinted_by(ahead, &file, MIB / 8, MIB / 8);
    CHECK_NAMED(n_bytes >= READ_AHEAD_FIRST && n_bytes < READ_AHEAD_FIRST + 8 * MIB, "a step of the file at most more");
    read_ahead_free(ahead);
}

struct following {
    struct read_ahead *ahead;
    const struct vfile *file;
};

static void read_twice(void *context)
{
    const struct following *following = context;
    read_ahead_follow(following->ahead, 1, following->file, 0, MIB / 8);
    read_ahead_follow(following->ahead, 1, following->file, MIB / 8, MIB / 8);
}

/* If memory runs out while bytes are named, only the attempt ends, and the next read is followed. */
static void lacks_memory(void)
{
    const struct vfile file = file_of(dtype_by_name("Q4_0"));
    bool failed = true;
    long n = 0;
    for (; failed && n < 100; n++) {
        struct following following = {read_ahead_new(), &file};
        allow_allocations(n);
        size_t lacking = attempt_lacking(read_twice, &following);
        failed = has_failed_allocation();
        allow_allocations(-1);
        CHECK((lacking > 0) == failed);
        hinted_by(following.ahead, &file, MIB, MIB / 8);
        CHECK(hinted_by(following.ahead, &file, MIB + MIB / 8, MIB / 8) > 0);
        read_ahead_free(following.ahead);
    }
    CHECK(!failed && n > 1);
}

int main(void)
{
    const struct source_identity identity = {.size = SOURCE_BYTES};
    arena = arena_new();
    source = source_new_file(&identity, "remote", &ops, NULL);
    const struct vfile file = file_of(&f32_dtype);
    CHECK(source_any_remote());
    grows(&file);
    tells_readers_apart(&file);
    counts_source_bytes();
    lacks_memory();
    source_close(source);
    arena_free(arena);
    return check_done();
}
