#include "fs/tree/vfile.h"

#include "base/arrival.h"
#include "base/little_endian.h"
#include "base/pool.h"
#include "formats/checkpoint.h"
#include "sources/location.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROWS = 300, COLUMNS = 1024 };

static void numbered_line(const void *context, size_t index, struct buffer *out)
{
    buffer_printf(out, "%s %06zu\n", (const char *)context, index);
}

/* A source file of F32 numbers 0, 1, 2 ... */
static struct source *numbers(float *values)
{
    char path[] = "/tmp/wfs-vfile-XXXXXX";
    struct error error;
    int fd = mkstemp(path);
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)i;
    little_endian(values, ROWS * COLUMNS, sizeof *values);
    ssize_t written = write(fd, values, ROWS * COLUMNS * sizeof *values);
    little_endian(values, ROWS * COLUMNS, sizeof *values);
    close(fd);
    struct source *source = written < 0 ? NULL : location_open_file(path, &error);
    unlink(path);
    return source;
}

/* A file with spans of every kind and size: header, stored tensor, padding, F16 of it, transposed, text. */
static struct vfile make_file(struct arena *arena, struct source *source)
{
    uint64_t shape[2] = {ROWS, COLUMNS};
    const struct view *stored = view_of_source(arena, source, 0, &f32_dtype, 2, shape);
    struct span_list spans = {.arena = arena};
    spans_add_literal(&spans, "header", 6);
    spans_add_view(&spans, stored, encoding_of(&f32_dtype));
    spans_add_zeros(&spans, 27);
    spans_add_literal(&spans, "", 0);
    spans_add_view(&spans, stored, encoding_of(&f16_dtype));
    spans_add_view(&spans, view_transpose(arena, stored), encoding_of(&f32_dtype));
    spans_add_view(&spans, view_slice(arena, stored, 0, 7, 97, 3), encoding_of(&f32_dtype));
    for (size_t i = 0; i < 50; i++)
        spans_add_text(&spans, numbered_line, "line", i, 12);
    return vfile_of_spans(&spans, (struct origin){0});
}

/* What it must hold, written down without any of the code under test but for the rounding to F16. */
static size_t expect(const float *values, unsigned char *out)
{
    const struct kernels *f32 = &f32_dtype.kernels[CPU_PORTABLE];
    unsigned char *at = out;
    at = (unsigned char *)memcpy(at, "header", 6) + 6;
    f32->encode(values, at, ROWS * COLUMNS);
    at += ROWS * COLUMNS * 4;
    at = (unsigned char *)memset(at, 0, 27) + 27;
    dtype_kernels_at(&f16_dtype, CPU_PORTABLE).encode(values, at, ROWS * COLUMNS);
    at += ROWS * COLUMNS * 2;
    for (size_t column = 0; column < COLUMNS; column++)
        for (size_t row = 0; row < ROWS; row++, at += 4)
            f32->encode(&values[row * COLUMNS + column], at, 1);
    for (size_t i = 0; i < 97; i++, at += COLUMNS * 4)
        f32->encode(&values[(7 + 3 * i) * COLUMNS], at, COLUMNS);
    for (int i = 0; i < 50; i++)
        at += sprintf((char *)at, "line %06d\n", i);
    return (size_t)(at - out);
}

static bool range_is(const struct vfile *file, const unsigned char *whole, uint64_t offset, size_t length,
                     unsigned char *scratch)
{
    struct error error;
    struct iovec iov[VFILE_MAX_IOV];
    size_t count, at = 0;
    if (!vfile_read(file, offset, length, scratch, &error) || memcmp(scratch, whole + offset, length) != 0)
        return false;
    if (!vfile_iov(file, offset, length, iov, &count, scratch, &error) || count > VFILE_MAX_IOV)
        return false;
    for (size_t i = 0; i < count; at += iov[i++].iov_len) {
        const unsigned char *bytes = iov[i].iov_base;
        bool computed = bytes >= scratch && bytes < scratch + file->size;
        if ((computed && bytes != scratch + at) || memcmp(bytes, whole + offset + at, iov[i].iov_len) != 0)
            return false;
    }
    return at == length;
}

static void ranges(const struct vfile *file, const unsigned char *whole)
{
    unsigned char *scratch = malloc(file->size);
    bool all = true;
    CHECK(range_is(file, whole, 0, file->size, scratch));
    CHECK(range_is(file, whole, file->size, 0, scratch));
    CHECK(range_is(file, whole, file->size - 1, 1, scratch));
    srand(1);
    for (int i = 0; i < 3000; i++) {
        uint64_t offset = ((uint64_t)rand() << 20 ^ (uint64_t)rand()) % file->size;
        static const size_t most[] = {16, 5000, 300000};
        size_t length = (size_t)rand() % most[i % 3];
        length = length < file->size - offset ? length : (size_t)(file->size - offset);
        all &= range_is(file, whole, offset, length, scratch);
    }
    CHECK_NAMED(all, "any range is a slice of the whole");
    for (size_t i = 0; i < file->n_spans; i++) {
        uint64_t start = file->spans[i].offset, from = start < 3 ? 0 : start - 3;
        size_t length = file->size - from < 9 ? (size_t)(file->size - from) : 9;
        all &= range_is(file, whole, from, length, scratch);
    }
    CHECK_NAMED(all, "ranges across each border of spans");
    free(scratch);
}

static void mapped_runs(const struct vfile *file, struct source *source)
{
    unsigned char *scratch = malloc(1 << 20);
    struct iovec iov[VFILE_MAX_IOV];
    struct error error;
    size_t count;
    CHECK(vfile_iov(file, 6, 1 << 20, iov, &count, scratch, &error) && count == 1);
    CHECK_NAMED(iov[0].iov_base == source_mapping(source, 0, 1), "stored bytes come from the mapping");
    free(scratch);
}

static void as_source(const struct vfile *file, const unsigned char *whole)
{
    unsigned char bytes[5000];
    struct error error;
    struct source *source = source_of_vfile(file, "virtual");
    CHECK(source_size(source) == file->size);
    for (uint64_t offset = 0; offset + sizeof bytes <= file->size; offset += 77777)
        CHECK(source_read(source, offset, sizeof bytes, bytes, &error) &&
              memcmp(bytes, whole + offset, sizeof bytes) == 0);
    CHECK(!source_read(source, file->size - 1, 2, bytes, &error));
    CHECK(source_mapping(source, 0, 10) == NULL);
    source_close(source);
}

/* A remote source whose bytes arrive all at once, or never. */
struct distant {
    struct source *source;
    atomic_bool has_arrived, has_changed;
    atomic_uint n_wanted, n_awaited, n_wanted_first; /* the last: by all, when it was first waited for */
};

static struct distant distant[2];

static void want_distant(void *context, uint64_t offset, uint64_t length, bool urgent)
{
    struct distant *from = context;
    (void)offset, (void)length, (void)urgent;
    atomic_fetch_add(&from->n_wanted, 1);
}

static bool has_come(void *context)
{
    const struct distant *from = context;
    return from->has_arrived || from->has_changed;
}

static bool wait_for_distant(void *context, uint64_t offset, uint64_t length, struct error *error)
{
    struct distant *from = context;
    (void)offset, (void)length;
    if (atomic_fetch_add(&from->n_awaited, 1) == 0)
        from->n_wanted_first = distant[0].n_wanted + distant[1].n_wanted;
    if (!arrival_wait(has_come, from, NULL, error))
        return false;
    if (!from->has_changed)
        return true;
    error_set(error, "it has changed");
    return error_set_code(error, ESTALE);
}

static bool read_distant(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    const struct distant *from = context;
    memset(out, (int)(offset % 7), length);
    return from->has_arrived || error_set(error, "read before it has arrived");
}

static void leave(void *context)
{
    (void)context;
}

struct awaited {
    const struct vfile *file;
    bool is_here;
    struct error error;
};

static void *await_all(void *context)
{
    struct awaited *awaited = context;
    awaited->is_here = vfile_wait(awaited->file, 0, awaited->file->size, &awaited->error);
    return NULL;
}

static struct awaited begin_and_announce(const struct vfile *file, atomic_bool *first, atomic_bool *second)
{
    pthread_t thread;
    struct awaited awaited = {.file = file};
    pthread_create(&thread, NULL, await_all, &awaited);
    while (distant[0].n_awaited == 0)
        sched_yield();
    *first = true;
    arrival_announce();
    while (distant[1].n_awaited == 0)
        sched_yield();
    *second = true;
    arrival_announce();
    pthread_join(thread, NULL);
    return awaited;
}

static void remote(struct arena *arena)
{
    static const struct source_ops ops = {
        .read = read_distant, .release = leave, .want = want_distant, .wait = wait_for_distant};
    const struct source_identity identity = {.size = ROWS * COLUMNS};
    const uint64_t shape[] = {ROWS, COLUMNS};
    struct span_list spans = {.arena = arena};
    spans_add_literal(&spans, "header", 6);
    for (int i = 0; i < 2; i++) {
        distant[i].source = source_new_file(&identity, "distant", &ops, &distant[i]);
        const struct view *view = view_of_source(arena, distant[i].source, 0, &u8_dtype, 2, shape);
        spans_add_view(&spans, view, encoding_of(i == 0 ? &u8_dtype : &f32_dtype));
    }
    const struct vfile file = vfile_of_spans(&spans, (struct origin){0});
    struct error error;
    unsigned char out[64];
    CHECK_NAMED(vfile_wait(&file, 0, 6, &error) && distant[0].n_wanted == 0, "a literal waits for nothing");
    struct awaited awaited = begin_and_announce(&file, &distant[0].has_arrived, &distant[1].has_arrived);
    CHECK(awaited.is_here && vfile_read(&file, 6 + ROWS * COLUMNS - 20, sizeof out, out, &error));
    CHECK_NAMED(distant[0].n_wanted_first == 2, "all are asked for before the first is waited for");

    distant[1].has_arrived = false;
    distant[0].n_awaited = distant[1].n_awaited = 0;
    awaited = begin_and_announce(&file, &distant[0].has_arrived, &distant[1].has_changed);
    CHECK(!awaited.is_here && awaited.error.code == ESTALE);
    struct source *whole = source_of_vfile(&file, "virtual");
    CHECK(source_is_remote(whole) && source_wait(whole, 0, 6 + ROWS * COLUMNS, &error));
    CHECK(!source_wait(whole, 6 + ROWS * COLUMNS, 1, &error));
    source_close(whole);
    source_close(distant[0].source);
    source_close(distant[1].source);
}

int main(void)
{
    float *values = malloc(ROWS * COLUMNS * sizeof *values);
    unsigned char *whole = malloc(ROWS * COLUMNS * 20);
    struct source *source = numbers(values);
    struct arena *arena = arena_new();
    struct vfile file = make_file(arena, source);
    CHECK(file.size == expect(values, whole));
    ranges(&file, whole);
    struct pool *helpers = pool_new(4);
    pool_use(helpers);
    ranges(&file, whole);
    pool_use(NULL);
    pool_free(helpers);
    mapped_runs(&file, source);
    as_source(&file, whole);
    remote(arena);
    arena_free(arena);
    source_close(source);
    free(whole);
    free(values);
    return check_done();
}
