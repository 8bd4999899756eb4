#include "fs/lib/copy.h"

#include "base/arena.h"
#include "base/attempt.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/stop.h"
#include "base/system.h"
#include "formats/gguf/write.h"
#include "fs/tree/read_ahead.h"
#include "sources/source.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    CHUNK_BYTES = 1 << 20, /* a chunk stays in a core's cache until it is written */
    CHUNKS_PER_THREAD = 4, /* the most chunks computed ahead of the writer, per thread */
};

/* A piece of the file: `iov` points to stored bytes in a source's mapping, and to computed ones in `bytes`. */
struct chunk {
    bool ready;
    size_t length, count;
    struct iovec iov[VFILE_MAX_IOV];
    unsigned char bytes[CHUNK_BYTES];
};

struct copy {
    const struct vfile *file;
    struct read_ahead *ahead;
    int fd;
    copy_progress *progress;
    copy_watch *watch;
    take_bytes *take;    /* called instead of writing to fd; NULL: write */
    void *context;       /* for `progress`, `watch` or `take` */
    uint64_t start, end; /* the range of the file */
    size_t n_chunks, n_slots;
    struct chunk **slots; /* chunk i is in slot i modulo n_slots */

    struct lock lock;          /* guards the following fields, and `ready` */
    struct event room_came;    /* a chunk was written, or the copy failed */
    size_t n_taken, n_written; /* chunks, in the file's order */
    bool writing, failed;
    struct error *error;
};

static void fail(struct copy *copy, const struct error *error)
{
    lock_take(&copy->lock);
    if (!copy->failed)
        *copy->error = *error;
    copy->failed = true;
    event_wake_all(&copy->room_came);
    lock_drop(&copy->lock);
}

/* Writes a whole vector; returns false with errno on failure. */
static bool write_vector(int fd, struct iovec *iov, size_t count)
{
    while (count > 0) {
        ssize_t n = writev(fd, iov, (int)count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        for (; count > 0 && (size_t)n >= iov->iov_len; iov++, count--)
            n -= (ssize_t)iov->iov_len;
        if (count > 0) {
            iov->iov_base = (char *)iov->iov_base + n;
            iov->iov_len -= (size_t)n;
        }
    }
    return true;
}

/* Writes a chunk. Stored bytes go from the source's page cache to the file in one copy, made by the kernel. */
static bool write_chunk(const struct copy *copy, struct chunk *chunk, size_t index, struct error *error)
{
    uint64_t offset = copy->start + (uint64_t)index * CHUNK_BYTES;
    if (copy->take != NULL)
        return copy->take(copy->context, chunk->bytes, chunk->length, error);
    if (write_vector(copy->fd, chunk->iov, chunk->count))
        return true;
    int reason = errno;
    if (reason == EFAULT && !vfile_read(copy->file, offset, chunk->length, chunk->bytes, error))
        return false; /* the source was truncated: the error says where */
    error_set_errno(error, reason, "writing at offset %llu", (unsigned long long)offset);
    return error_set_code(error, reason);
}

/* Tells those who watch the copy of a chunk. Returns false if they stop it. */
static bool tell(const struct copy *copy, size_t length, size_t n_written, struct error *error)
{
    uint64_t n_bytes = (uint64_t)n_written * CHUNK_BYTES, whole = copy->end - copy->start;
    if (copy->progress != NULL)
        copy->progress(copy->context, length);
    if (copy->watch == NULL || copy->watch(copy->context, n_bytes < whole ? n_bytes : whole))
        return true;
    error_set(error, "the copy was stopped");
    return error_set_code(error, ECANCELED);
}

/* What a thread does to a chunk that others wait for, the chunk or its failure: an attempt of its own. */
struct working {
    struct copy *copy;
    size_t index;
    struct chunk *chunk;
    struct error *error;
    bool done;
};

static void try_to_write(void *context)
{
    struct working *working = context;
    struct copy *copy = working->copy;
    working->done = write_chunk(copy, working->chunk, working->index, working->error) &&
                    tell(copy, working->chunk->length, working->index + 1, working->error);
}

static bool work_on_chunk(struct copy *copy, size_t index, struct chunk *chunk, void work(void *context),
                          struct error *error)
{
    struct working working = {copy, index, chunk, error, false};
    return attempt(work, &working, error) && working.done;
}

/* Writes the chunks that are ready, unless another thread is writing: two writers would wait for each other at the
 * file's lock, and taking turns after each chunk would lose the core's cache. */
static void write_ready(struct copy *copy)
{
    struct error error;
    lock_take(&copy->lock);
    while (!copy->writing && !copy->failed && copy->n_written < copy->n_taken) {
        struct chunk *chunk = copy->slots[copy->n_written % copy->n_slots];
        if (!chunk->ready)
            break;
        copy->writing = true;
        lock_drop(&copy->lock);
        if (!work_on_chunk(copy, copy->n_written, chunk, try_to_write, &error))
            fail(copy, &error);
        lock_take(&copy->lock);
        copy->writing = chunk->ready = false;
        copy->n_written++;
        event_wake_all(&copy->room_came);
    }
    lock_drop(&copy->lock);
}

/* Waits for room and returns the next chunk to make; NULL at the end. Waiting here does not delay the copy: other
 * threads are making or writing all chunks that were taken. */
static struct chunk *take_chunk(struct copy *copy, size_t *ret_index)
{
    struct chunk *chunk = NULL;
    lock_take(&copy->lock);
    while (copy->n_taken < copy->n_chunks && copy->n_taken - copy->n_written == copy->n_slots && !copy->failed)
        event_wait(&copy->room_came, &copy->lock);
    if (copy->n_taken < copy->n_chunks && !copy->failed) {
        *ret_index = copy->n_taken++;
        chunk = copy->slots[*ret_index % copy->n_slots];
    }
    lock_drop(&copy->lock);
    return chunk;
}

/* Waits for a chunk's remote bytes, and reads ahead up to the end of the range. A thread of the pool may wait, because
 * the pool works only for the copy here. */
static bool await_chunk(const struct copy *copy, uint64_t offset, size_t length, struct error *error)
{
    struct vfile up_to_end = *copy->file;
    up_to_end.size = copy->end;
    vfile_want(copy->file, offset, length, true);
    read_ahead_follow(copy->ahead, 0, &up_to_end, offset, length);
    return vfile_wait(copy->file, offset, length, error);
}

/* Makes a chunk. Reads bytes for take() instead of mapping them, because a mapping may lose pages. */
static bool read_chunk(const struct copy *copy, size_t index, struct chunk *chunk, struct error *error)
{
    uint64_t offset = copy->start + (uint64_t)index * CHUNK_BYTES, left = copy->end - offset;
    chunk->length = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
    if (stop_is_due(error) || !await_chunk(copy, offset, chunk->length, error))
        return false;
    if (copy->take != NULL)
        return vfile_read(copy->file, offset, chunk->length, chunk->bytes, error);
    return vfile_iov(copy->file, offset, chunk->length, chunk->iov, &chunk->count, chunk->bytes, error);
}

static void try_to_read(void *context)
{
    struct working *working = context;
    working->done = read_chunk(working->copy, working->index, working->chunk, working->error);
}

static void make_chunks(void *context, size_t unused)
{
    struct copy *copy = context;
    struct chunk *chunk;
    struct error error;
    for (size_t index; (chunk = take_chunk(copy, &index)) != NULL; write_ready(copy)) {
        if (!work_on_chunk(copy, index, chunk, try_to_read, &error)) {
            fail(copy, &error);
            return;
        }
        lock_take(&copy->lock);
        chunk->ready = true;
        lock_drop(&copy->lock);
    }
}

static bool run_copy(struct copy *copy)
{
    size_t most_slots = CHUNKS_PER_THREAD * pool_width();
    copy->n_chunks = (size_t)((copy->end - copy->start + CHUNK_BYTES - 1) / CHUNK_BYTES);
    copy->n_slots = copy->n_chunks < most_slots ? copy->n_chunks : most_slots;
    copy->slots = memory_alloc((copy->n_slots + 1) * sizeof *copy->slots);
    for (size_t i = 0; i < copy->n_slots; i++) {
        copy->slots[i] = memory_alloc(sizeof **copy->slots);
        copy->slots[i]->ready = false;
    }
    copy->ahead = read_ahead_new();
    lock_init(&copy->lock);
    event_init(&copy->room_came);
    pool_run(copy->n_chunks < pool_width() ? copy->n_chunks : pool_width(), make_chunks, copy);
    event_destroy(&copy->room_came);
    lock_destroy(&copy->lock);
    read_ahead_free(copy->ahead);
    for (size_t i = 0; i < copy->n_slots; i++)
        free(copy->slots[i]);
    free(copy->slots);
    return !copy->failed;
}

bool copy_file(const struct vfile *file, int fd, copy_progress *progress, void *context, struct error *error)
{
    return run_copy(&(struct copy){
        .file = file, .fd = fd, .progress = progress, .context = context, .end = file->size, .error = error});
}

bool copy_watched(const struct vfile *file, int fd, copy_watch *watch, void *context, struct error *error)
{
    return run_copy(
        &(struct copy){.file = file, .fd = fd, .watch = watch, .context = context, .end = file->size, .error = error});
}

bool copy_range(const struct vfile *file, uint64_t offset, uint64_t length, int fd, struct error *error)
{
    return run_copy(&(struct copy){.file = file, .fd = fd, .start = offset, .end = offset + length, .error = error});
}

bool take_range(const struct vfile *file, uint64_t offset, uint64_t length, take_bytes *take, void *context,
                struct error *error)
{
    return run_copy(&(struct copy){
        .file = file, .take = take, .context = context, .start = offset, .end = offset + length, .error = error});
}

bool take_file(const struct vfile *file, take_bytes *take, void *context, struct error *error)
{
    return take_range(file, 0, file->size, take, context, error);
}

enum { BLOCK = GGUF_SHARED_BLOCK, PIECE = 1 << 20 };

struct sharing {
    const struct vfile *file;
    int fd;
    copy_progress *progress;
    void *context;
    uint64_t end; /* all before is written or shared */
    struct reflinked reflinked;
    unsigned char *bytes; /* room for a PIECE */
    struct error *error;
};

static bool write_piece(const struct sharing *sharing, uint64_t offset, size_t length)
{
    if (!vfile_wait(sharing->file, offset, length, sharing->error) ||
        !vfile_read(sharing->file, offset, length, sharing->bytes, sharing->error))
        return false;
    for (size_t n_written = 0; n_written < length;) {
        ssize_t n = pwrite(sharing->fd, sharing->bytes + n_written, length - n_written, (off_t)(offset + n_written));
        if (n < 0 && errno != EINTR)
            return error_set_errno(sharing->error, errno, "writing at offset %llu", (unsigned long long)offset);
        n_written += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Writes what comes before an offset. */
static bool write_until(struct sharing *sharing, uint64_t offset)
{
    while (sharing->end < offset) {
        size_t length = offset - sharing->end < PIECE ? (size_t)(offset - sharing->end) : PIECE;
        if (!write_piece(sharing, sharing->end, length))
            return false;
        sharing->end += length;
        sharing->progress(sharing->context, length);
    }
    return true;
}

/* Shares blocks of a stored run at `offset` of the file: whole ones, and the last of a file that ends with its source.
 * If the file system refuses, they are written later. */
static bool share_run(struct sharing *sharing, uint64_t offset, const struct extent *from, uint64_t length)
{
    const int source = source_descriptor(from->source);
    const uint64_t skip = (BLOCK - offset % BLOCK) % BLOCK;
    const bool ends_both = offset + length == sharing->file->size && from->offset + length == source_size(from->source);
    if (source < 0 || offset % BLOCK != from->offset % BLOCK || sharing->reflinked.reason != 0 || length < skip + BLOCK)
        return true;
    uint64_t n_shared = ends_both ? length - skip : (length - skip) / BLOCK * BLOCK;
    const struct system_clone clone = {source, sharing->fd, from->offset + skip, offset + skip, n_shared};
    sharing->reflinked.reason = system_clone(&clone);
    if (sharing->reflinked.reason != 0)
        return true;
    if (!write_until(sharing, offset + skip))
        return false;
    sharing->end = offset + skip + n_shared;
    sharing->reflinked.n_shared += n_shared;
    sharing->progress(sharing->context, n_shared);
    return true;
}

/* Ends at a run that is shorter than a block: a transposed matrix has one for each element. */
static bool share_span(struct sharing *sharing, const struct span *span)
{
    if (span->kind != SPAN_VIEW || span->view->dtype != span->encoding.dtype)
        return true;
    const size_t unit = span->view->dtype->block_bytes;
    struct extent from;
    for (uint64_t first = 0, n; first < view_units(span->view); first += n) {
        n = view_stored(span->view, first, &from);
        if (n * unit < BLOCK)
            return true;
        if (!share_run(sharing, span->offset + first * unit, &from, n * unit))
            return false;
    }
    return true;
}

static bool share_all(struct sharing *sharing)
{
    const struct vfile *file = sharing->file;
    if (ftruncate(sharing->fd, (off_t)file->size) != 0)
        return error_set_errno(sharing->error, errno, "making room for %llu bytes", (unsigned long long)file->size);
    for (size_t i = 0; i < file->n_spans; i++)
        if (!share_span(sharing, &file->spans[i]))
            return false;
    return write_until(sharing, file->size);
}

bool reflink_file(const struct vfile *file, int fd, copy_progress *progress, void *context,
                  struct reflinked *ret_reflinked, struct error *error)
{
    struct sharing sharing = {.file = file, .fd = fd, .progress = progress, .context = context, .error = error};
    sharing.bytes = memory_alloc(PIECE);
    sharing.reflinked.is_small = file->size < BLOCK;
    bool done = share_all(&sharing);
    free(sharing.bytes);
    *ret_reflinked = sharing.reflinked;
    if (done && sharing.reflinked.n_shared > 0 && origin_verify(&file->origin))
        return error_set(error, "a source changed while its blocks were shared");
    return done;
}
