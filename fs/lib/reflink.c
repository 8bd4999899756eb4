#include "fs/lib/copy.h"

#include "base/system.h"
#include "formats/gguf/write.h"
#include "sources/source.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

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
