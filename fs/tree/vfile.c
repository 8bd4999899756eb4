#include "fs/tree/vfile.h"

#include "base/pool.h"
#include "base/sort.h"
#include "fs/kept/kept.h"
#include "quant/views/convert.h"
#include "quant/views/dependencies.h"
#include "sources/source.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIN_STORED_RUN = 4096,   /* shorter runs are copied: a vector of many short pieces costs more */
    SPLIT_COST = 300 * 1000, /* nanoseconds from which several threads compute a range */
    TASK_COST = 100 * 1000,  /* nanoseconds that one task of a divided range should take at least */
    LARGEST_BLOCK = 512,
    SLOW_COST = 1000, /* picoseconds per element: twice what reading 0.56 bytes from the store takes, as of Q4_K */
};

struct vfile vfile_of_spans(const struct span_list *spans, struct origin origin)
{
    return (struct vfile){.size = spans->size,
                          .spans = spans->spans,
                          .n_spans = spans->n_spans,
                          .origin = origin,
                          .header = spans->header,
                          .has_size_alone = spans->has_size_alone};
}

enum outcome vfile_of_artifact(const struct artifact *artifact, struct origin origin, struct arena *arena,
                               struct vfile *ret_file, struct error *error)
{
    struct span_list spans = {.arena = arena};
    if (!artifact->container->lay_out(artifact, &spans, error))
        return FAILED;
    *ret_file = vfile_of_spans(&spans, origin);
    return OK;
}

struct vfile vfile_of_text(const void *bytes, size_t length, struct origin origin, struct arena *arena)
{
    struct span_list spans = {.arena = arena};
    spans_add_literal(&spans, arena_copy(arena, bytes, length), length);
    return vfile_of_spans(&spans, origin);
}

struct vfile vfile_of_source(struct arena *arena, struct source *source, struct origin origin)
{
    uint64_t size = source_size(source);
    struct span_list spans = {.arena = arena};
    spans_add_view(&spans, view_of_source(arena, source, 0, &u8_dtype, 1, &size), encoding_of(&u8_dtype));
    struct vfile file = vfile_of_spans(&spans, origin);
    file.whole = source;
    return file;
}

struct wanted_byte {
    const struct span *spans;
    uint64_t offset;
};

static bool span_ends_before(const void *context, size_t index)
{
    const struct wanted_byte *wanted = context;
    return wanted->spans[index + 1].offset <= wanted->offset;
}

/* Returns the span that holds the byte at `offset`, which is inside the file. */
const struct span *vfile_span_at(const struct vfile *file, uint64_t offset)
{
    const struct wanted_byte wanted = {file->spans, offset};
    return &file->spans[search_first(file->n_spans - 1, span_ends_before, &wanted)];
}

/* Reading a computed range of whole blocks, with several threads if that is faster. */

struct split {
    const struct span *span;
    uint64_t first, count, step; /* blocks */
    unsigned char *out;
    atomic_bool failed;
    struct error *error; /* the error of the first task that failed */
};

static void split_task(void *context, size_t index)
{
    struct split *split = context;
    struct error error;
    uint64_t first = index * split->step,
             count = split->count - first < split->step ? split->count - first : split->step;
    unsigned char *out = split->out + first * split->span->encoding.dtype->block_bytes;
    if (atomic_load(&split->failed))
        return;
    if (!convert_read(split->span->view, split->span->encoding, split->first + first, count, out, &error) &&
        !atomic_exchange(&split->failed, true))
        *split->error = error;
}

static bool read_blocks(const struct span *span, uint64_t first, uint64_t count, unsigned char *out,
                        struct error *error)
{
    uint64_t cost = convert_cost(span->view, span->encoding, count);
    if (cost < SPLIT_COST || pool_width() == 1)
        return convert_read(span->view, span->encoding, first, count, out, error);
    uint64_t n_tasks = cost / TASK_COST, most = pool_width() * 4;
    n_tasks = n_tasks < most ? n_tasks : most;
    struct split split = {.span = span, .first = first, .count = count, .out = out, .error = error};
    split.step = (count + n_tasks - 1) / n_tasks;
    pool_run((size_t)((count + split.step - 1) / split.step), split_task, &split);
    return !split.failed;
}

/* Reads a part of one block. */
static bool read_partial_block(const struct span *span, uint64_t block, size_t skip, size_t length, unsigned char *out,
                               struct error *error)
{
    unsigned char bytes[LARGEST_BLOCK];
    assert(span->encoding.dtype->block_bytes <= sizeof bytes);
    if (!convert_read(span->view, span->encoding, block, 1, bytes, error))
        return false;
    memcpy(out, bytes + skip, length);
    return true;
}

static bool read_view(const struct span *span, uint64_t offset, size_t length, unsigned char *out, struct error *error)
{
    size_t block_bytes = span->encoding.dtype->block_bytes, skip = offset % block_bytes;
    uint64_t block = offset / block_bytes;
    if (skip != 0) {
        size_t part = block_bytes - skip < length ? block_bytes - skip : length;
        if (!read_partial_block(span, block++, skip, part, out, error))
            return false;
        out += part;
        length -= part;
    }
    uint64_t n_blocks = length / block_bytes;
    if (n_blocks != 0 && !read_blocks(span, block, n_blocks, out, error))
        return false;
    out += n_blocks * block_bytes;
    length -= n_blocks * block_bytes;
    return length == 0 || read_partial_block(span, block + n_blocks, 0, length, out, error);
}

static void read_text(const struct span *span, uint64_t offset, size_t length, unsigned char *out)
{
    struct buffer text = {0};
    span->text(span->context, span->index, &text);
    assert(text.length == span->length);
    memcpy(out, text.bytes + offset, length);
    buffer_free(&text);
}

/* Reads from one span; the offset is from its start. */
static bool read_span(const struct span *span, uint64_t offset, size_t length, unsigned char *out, struct error *error)
{
    switch (span->kind) {
    case SPAN_LITERAL:
        memcpy(out, (const unsigned char *)span->literal + offset, length);
        return true;
    case SPAN_ZEROS:
        memset(out, 0, length);
        return true;
    case SPAN_TEXT:
        read_text(span, offset, length, out);
        return true;
    case SPAN_VIEW:
        return read_view(span, offset, length, out, error);
    }
    return false;
}

bool vfile_compute(const struct vfile *file, uint64_t offset, size_t length, void *out, struct error *error)
{
    assert(offset <= file->size && length <= file->size - offset);
    unsigned char *to = out;
    const struct span *span = length != 0 ? vfile_span_at(file, offset) : NULL;
    while (length > 0) {
        uint64_t within = offset - span->offset, left = span->length - within;
        size_t part = left < length ? (size_t)left : length;
        if (!read_span(span, within, part, to, error))
            return false;
        to += part;
        offset += part;
        length -= part;
        span++;
    }
    return true;
}

bool vfile_read(const struct vfile *file, uint64_t offset, size_t length, void *out, struct error *error)
{
    return file->kept != NULL ? kept_read(file, offset, length, out, error)
                              : vfile_compute(file, offset, length, out, error);
}

static enum vfile_making span_making(const struct span *span, uint64_t offset)
{
    struct extent extent;
    const struct dtype *dtype = span->encoding.dtype;
    if (span->kind != SPAN_VIEW ||
        (span->view->dtype == dtype && view_stored(span->view, offset / dtype->block_bytes, &extent) > 0))
        return MADE_BY_COPYING;
    return dtype->kind == DTYPE_BLOCK && dtype->encode_cost >= SLOW_COST ? MADE_SLOWLY : MADE_BY_COMPUTING;
}

enum vfile_making vfile_making(const struct vfile *file, uint64_t offset, uint64_t length)
{
    enum vfile_making most = MADE_BY_COPYING;
    const uint64_t end = offset + length;
    const struct span *after = file->spans + file->n_spans;
    for (const struct span *span = vfile_span_at(file, offset); span < after && span->offset < end; span++) {
        enum vfile_making making = span_making(span, offset > span->offset ? offset - span->offset : 0);
        most = making > most ? making : most;
        if (most == MADE_SLOWLY)
            break;
    }
    return most;
}

/* Returns how many bytes from `offset` on, at most `length`, can be sent straight from a mapping; 0: none. */
static size_t stored_run(const struct span *span, uint64_t offset, size_t length, const void **ret_bytes)
{
    if (span->kind != SPAN_VIEW || span->view->dtype != span->encoding.dtype)
        return 0;
    struct extent extent;
    size_t unit = span->encoding.dtype->block_bytes, skip = offset % unit;
    uint64_t n_bytes = view_stored(span->view, offset / unit, &extent) * unit;
    if (n_bytes <= skip)
        return 0;
    n_bytes -= skip;
    if (n_bytes < MIN_STORED_RUN && n_bytes < length)
        return 0;
    size_t run = n_bytes < length ? (size_t)n_bytes : length;
    *ret_bytes = source_mapping(extent.source, extent.offset + skip, run);
    return *ret_bytes != NULL ? run : 0;
}

/* Returns how many bytes from `offset` on must be computed, up to a run that a mapping holds. Looks for such a run in
 * steps of at least MIN_STORED_RUN bytes, since a transposed matrix has runs of one element. */
static size_t computed_run(const struct span *span, uint64_t offset, size_t length)
{
    const void *bytes;
    if (span->kind != SPAN_VIEW || span->view->dtype != span->encoding.dtype || span->view->op->stored == NULL)
        return length;
    size_t run = 0;
    while (run < length && (run == 0 || stored_run(span, offset + run, length - run, &bytes) == 0)) {
        struct extent extent;
        size_t unit = span->encoding.dtype->block_bytes, skip = (offset + run) % unit;
        uint64_t n_bytes = view_stored(span->view, (offset + run) / unit, &extent) * unit;
        run += n_bytes > skip + MIN_STORED_RUN ? (size_t)(n_bytes - skip) : MIN_STORED_RUN;
    }
    return run < length ? run : length;
}

/* An iovec of writev() is not const, and what it points to is not written. */
static struct iovec iovec_of(const void *bytes, size_t length)
{
    union {
        const void *read;
        void *unwritten;
    } both = {bytes};
    return (struct iovec){both.unwritten, length};
}

void vfile_add_piece(struct iovec *iov, size_t *count, const void *bytes, size_t length)
{
    if (*count > 0 && (const char *)iov[*count - 1].iov_base + iov[*count - 1].iov_len == bytes)
        iov[*count - 1].iov_len += length;
    else
        iov[(*count)++] = iovec_of(bytes, length);
}

bool vfile_append_iov(const struct vfile *file, uint64_t offset, size_t length, struct iovec *iov, size_t *count,
                      void *scratch, struct error *error)
{
    assert(offset <= file->size && length <= file->size - offset);
    unsigned char *to = scratch;
    const struct span *span = length != 0 ? vfile_span_at(file, offset) : NULL;
    while (length > 0) {
        uint64_t within = offset - span->offset, left = span->length - within;
        size_t part = left < length ? (size_t)left : length;
        const void *bytes = NULL;
        size_t run = *count < VFILE_MAX_IOV - 1 ? stored_run(span, within, part, &bytes) : 0;
        if (run == 0) {
            run = *count < VFILE_MAX_IOV - 1 ? computed_run(span, within, part) : part;
            if (!read_span(span, within, run, to, error))
                return false;
            bytes = to;
        }
        vfile_add_piece(iov, count, bytes, run);
        to += run;
        offset += run;
        length -= run;
        if (run == left)
            span++;
    }
    return true;
}

bool vfile_iov(const struct vfile *file, uint64_t offset, size_t length, struct iovec *iov, size_t *ret_count,
               void *scratch, struct error *error)
{
    *ret_count = 0;
    return file->kept != NULL ? kept_iov(file, offset, length, iov, ret_count, scratch, error)
                              : vfile_append_iov(file, offset, length, iov, ret_count, scratch, error);
}

void vfile_depends(const struct vfile *file, uint64_t offset, uint64_t length, struct dependencies *to)
{
    assert(offset <= file->size && length <= file->size - offset);
    const struct span *span = length != 0 ? vfile_span_at(file, offset) : NULL;
    for (uint64_t part; length > 0; span++, offset += part, length -= part) {
        uint64_t within = offset - span->offset, left = span->length - within;
        part = left < length ? left : length;
        if (span->kind != SPAN_VIEW)
            continue;
        size_t block_bytes = span->encoding.dtype->block_bytes;
        uint64_t first = within / block_bytes, last = (within + part - 1) / block_bytes;
        convert_depends(span->view, span->encoding, first, last - first + 1, to);
    }
}

static void want(void *context, const struct extent *from, uint64_t n_bytes)
{
    const bool *urgent = context;
    if (source_is_remote(from->source))
        source_want(from->source, from->offset, n_bytes, *urgent);
}

void vfile_want(const struct vfile *file, uint64_t offset, uint64_t length, bool urgent)
{
    struct dependencies to = {.take = want, .context = &urgent};
    if (!source_any_remote() || kept_has(file, offset, length, false))
        return;
    vfile_depends(file, offset, length, &to);
    dependencies_end(&to);
}

struct arrival {
    bool is_here;
    struct error *error;
};

static void await(void *context, const struct extent *from, uint64_t n_bytes)
{
    struct arrival *arrival = context;
    arrival->is_here = arrival->is_here && source_wait(from->source, from->offset, n_bytes, arrival->error);
}

/* Asks for all bytes before waiting for the first. */
bool vfile_wait(const struct vfile *file, uint64_t offset, uint64_t length, struct error *error)
{
    struct arrival arrival = {true, error};
    struct dependencies to = {.take = await, .context = &arrival};
    if (!source_any_remote() || kept_has(file, offset, length, true))
        return true;
    vfile_want(file, offset, length, true);
    vfile_depends(file, offset, length, &to);
    dependencies_end(&to);
    return arrival.is_here;
}

static void source_want_vfile(void *context, uint64_t offset, uint64_t length, bool urgent)
{
    vfile_want(context, offset, length, urgent);
}

static bool source_wait_vfile(void *context, uint64_t offset, uint64_t length, struct error *error)
{
    return vfile_wait(context, offset, length, error);
}

static bool source_read_vfile(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    return vfile_wait(context, offset, length, error) && vfile_read(context, offset, length, out, error);
}

struct source *source_of_vfile(const struct vfile *file, const char *name)
{
    static const struct source_ops local = {.read = source_read_vfile, .release = free};
    static const struct source_ops remote = {
        .read = source_read_vfile, .release = free, .want = source_want_vfile, .wait = source_wait_vfile};
    const struct source_identity identity = {.size = file->size, .permissions = 0444};
    struct vfile *copy = memory_alloc(sizeof *copy);
    *copy = *file;
    return source_new_file(&identity, name, source_any_remote() ? &remote : &local, copy);
}

struct place {
    const struct span *spans;
    uint64_t offset;
};

static bool ends_before(const void *context, size_t index)
{
    const struct place *place = context;
    return place->spans[index].offset + place->spans[index].length <= place->offset;
}

uint64_t vfile_read_cost(const struct vfile *file, uint64_t offset, uint64_t length)
{
    const struct place place = {file->spans, offset};
    uint64_t cost = 0, end = offset + length;
    for (size_t i = search_first(file->n_spans, ends_before, &place); i < file->n_spans && file->spans[i].offset < end;
         i++) {
        const struct span *span = &file->spans[i];
        uint64_t from = span->offset > offset ? span->offset : offset,
                 to = span->offset + span->length < end ? span->offset + span->length : end;
        if (span->kind == SPAN_VIEW)
            cost += convert_cost(span->view, span->encoding, (to - from) / span->encoding.dtype->block_bytes);
    }
    return cost;
}
