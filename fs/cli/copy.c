#include "fs/cli/copy.h"

#include "base/arena.h"
#include "fs/tree/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 20 }; /* stays in a core's cache between being made and being written */

struct chunk {
    struct chunk *next;
    unsigned char bytes[CHUNK_BYTES];
};

struct copy {
    const struct vfile *file;
    int fd;
    bool at_offsets;
    copy_progress *progress;
    void *context;

    pthread_mutex_t lock; /* guards what follows */
    struct chunk *unused; /* buffers */
    pthread_cond_t turn_came;
    size_t turn; /* the chunk that may be written next, when in order */
    bool failed;
    struct error *error;
};

/* Writes all of a vector; false with errno set. */
static bool write_vector(const struct copy *copy, struct iovec *iov, size_t count, uint64_t offset)
{
    while (count > 0) {
        ssize_t n = copy->at_offsets ? pwritev(copy->fd, iov, (int)count, (off_t)offset) : writev(copy->fd, iov, (int)count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        offset += (uint64_t)n;
        for (; count > 0 && (size_t)n >= iov->iov_len; iov++, count--)
            n -= (ssize_t)iov->iov_len;
        if (count > 0) {
            iov->iov_base = (char *)iov->iov_base + n;
            iov->iov_len -= (size_t)n;
        }
    }
    return true;
}

/* Waits until all chunks before this one are written; false where one of them failed. Chunks are taken in order, so the one
 * waited for is being worked on. */
static bool await_turn(struct copy *copy, size_t index)
{
    pthread_mutex_lock(&copy->lock);
    while (copy->turn != index && !copy->failed)
        pthread_cond_wait(&copy->turn_came, &copy->lock);
    bool may_write = !copy->failed;
    pthread_mutex_unlock(&copy->lock);
    return may_write;
}

/* Bytes that lie stored in a source go from its page cache to the file in one copy, which is the kernel's. */
static bool write_range(struct copy *copy, size_t index, uint64_t offset, size_t length, unsigned char *scratch,
                        struct error *error)
{
    struct iovec iov[VFILE_MAX_IOV];
    size_t count;
    if (!vfile_iov(copy->file, offset, length, iov, &count, scratch, error))
        return false;
    if (!copy->at_offsets && !await_turn(copy, index))
        return true; /* another chunk has failed, and said so */
    if (write_vector(copy, iov, count, offset))
        return true;
    int reason = errno;
    if (reason == EFAULT && !vfile_read(copy->file, offset, length, scratch, error))
        return false; /* the source is gone in part: it says where */
    return error_set_errno(error, reason, "writing at offset %llu", (unsigned long long)offset);
}

/* A buffer; NULL once the copy has failed. */
static struct chunk *begin_chunk(struct copy *copy)
{
    pthread_mutex_lock(&copy->lock);
    struct chunk *chunk = copy->unused;
    bool failed = copy->failed;
    if (chunk != NULL && !failed)
        copy->unused = chunk->next;
    pthread_mutex_unlock(&copy->lock);
    if (failed)
        return NULL;
    return chunk != NULL ? chunk : memory_alloc(sizeof *chunk);
}

static void end_chunk(struct copy *copy, struct chunk *chunk, size_t index, size_t length)
{
    pthread_mutex_lock(&copy->lock);
    chunk->next = copy->unused;
    copy->unused = chunk;
    copy->turn = index + 1;
    if (!copy->failed && copy->progress != NULL)
        copy->progress(copy->context, length);
    pthread_cond_broadcast(&copy->turn_came);
    pthread_mutex_unlock(&copy->lock);
}

static void fail(struct copy *copy, const struct error *error)
{
    pthread_mutex_lock(&copy->lock);
    if (!copy->failed)
        *copy->error = *error;
    copy->failed = true;
    pthread_mutex_unlock(&copy->lock);
}

static void copy_chunk(void *context, size_t index)
{
    struct copy *copy = context;
    struct error error;
    uint64_t offset = (uint64_t)index * CHUNK_BYTES, left = copy->file->size - offset;
    size_t length = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
    struct chunk *chunk = begin_chunk(copy);
    if (chunk == NULL)
        return;
    if (!write_range(copy, index, offset, length, chunk->bytes, &error))
        fail(copy, &error);
    end_chunk(copy, chunk, index, length);
}

bool copy_file(const struct vfile *file, int fd, bool at_offsets, copy_progress *progress, void *context, struct error *error)
{
    struct copy copy = {
        .file = file,
        .fd = fd,
        .at_offsets = at_offsets,
        .progress = progress,
        .context = context,
        .error = error,
    };
    pthread_mutex_init(&copy.lock, NULL);
    pthread_cond_init(&copy.turn_came, NULL);
    pool_run((size_t)((file->size + CHUNK_BYTES - 1) / CHUNK_BYTES), copy_chunk, &copy);
    for (struct chunk *chunk = copy.unused, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    pthread_cond_destroy(&copy.turn_came);
    pthread_mutex_destroy(&copy.lock);
    return !copy.failed;
}
