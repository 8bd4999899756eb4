/* Virtual files: an exact size, and any range of bytes computed from just what it depends on.
 *
 * A vfile is a constant list of spans. It keeps no state: ranges may be read in any order, twice, and by many threads
 * at once. Spans (formats/span.h), literals and views belong to the code that planned the file. */
#pragma once

#include "formats/artifact.h"
#include "fs/tree/origin.h"

#include <sys/uio.h>

struct dependencies;

struct vfile {
    uint64_t size;
    const struct span *spans;
    size_t n_spans;
    struct origin origin;
};

struct vfile vfile_of_spans(const struct span_list *spans, struct origin origin);

/* Makes the file of an artifact in the arena, and frees the artifact; its tensors and lent values live longer. */
enum outcome vfile_of_artifact(struct artifact *artifact, struct origin origin, struct arena *arena,
                               struct vfile *ret_file, struct error *error);

/* A copy of a text, in the arena. */
struct vfile vfile_of_text(const void *bytes, size_t length, struct origin origin, struct arena *arena);

/* All of a source, as it is. */
struct vfile vfile_of_source(struct arena *arena, struct source *source, struct origin origin);

/* Reads [offset, offset + length) into `out`; the range is inside the file. All of it or an error. */
bool vfile_read(const struct vfile *file, uint64_t offset, size_t length, void *out, struct error *error);

/* The same range as a vector, for writev to the kernel: runs that lie in a source as they are point into its mapping
 * (they must not be touched by us; the kernel's copy fails where the source has been truncated), all others into
 * `scratch`, which has room for `length` bytes: each at its own place of the range, so that a page of `scratch` becomes
 * a page of the file where the range begins one. At most VFILE_MAX_IOV elements. */
enum { VFILE_MAX_IOV = 256 };
bool vfile_iov(const struct vfile *file, uint64_t offset, size_t length, struct iovec *iov, size_t *ret_count,
               void *scratch, struct error *error);

/* Adds the stored bytes that [offset, offset + length), inside the file, is computed from, as view_depends(). */
void vfile_depends(const struct vfile *file, uint64_t offset, uint64_t length, struct dependencies *to);

/* Names the remote bytes that the range is computed from, as source_want(); never waits. */
void vfile_want(const struct vfile *file, uint64_t offset, uint64_t length, bool urgent);

/* Waits until the range can be read without waiting for a network; fails if it cannot be had. Call it before reading,
 * on a thread that nobody else depends on: reads are computed by the threads of pool.h. A file of local sources waits
 * for nothing. */
bool vfile_wait(const struct vfile *file, uint64_t offset, uint64_t length, struct error *error);

/* The file as a source, for readers of formats; it keeps the file, whose spans live longer. */
struct source *source_of_vfile(const struct vfile *file, const char *name);
