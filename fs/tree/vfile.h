/* Virtual files: an exact size, and any range of bytes computed from just the stored bytes it depends on.
 *
 * A vfile is a constant list of spans. It keeps no state: ranges may be read in any order, twice, and by many threads
 * at once. Spans (formats/artifact.h), literals and views belong to the code that planned the file. */
#pragma once

#include "formats/artifact.h"
#include "formats/origin.h"

#include <sys/uio.h>

struct dependencies;
struct kept;

struct vfile {
    uint64_t size;
    const struct span *spans;
    size_t n_spans;
    struct origin origin;
    struct span_header header;
    bool has_size_alone;        /* the spans are not to be read: the file is planned again before */
    const struct source *whole; /* all of its bytes are those of this source, which is not computed; NULL: of none */
    struct kept *kept;          /* what is read from the store instead (fs/kept/kept.h); NULL: nothing */
};

/* These functions make files. The spans, all data they point to, and the origin's sources must outlive the file. */

struct vfile vfile_of_spans(const struct span_list *spans, struct origin origin);

/* Lays an artifact out in the arena; its tensors and lent values must outlive the file. Returns OK or FAILED. */
enum outcome vfile_of_artifact(const struct artifact *artifact, struct origin origin, struct arena *arena,
                               struct vfile *ret_file, struct error *error);

/* Copies a text into the arena. */
struct vfile vfile_of_text(const void *bytes, size_t length, struct origin origin, struct arena *arena);

/* Shows a whole source, unchanged: vfile.whole. */
struct vfile vfile_of_source(struct arena *arena, struct source *source, struct origin origin);

/* Reads [offset, offset + length), which must be inside the file, into `out`: all of it, or an error. */
bool vfile_read(const struct vfile *file, uint64_t offset, size_t length, void *out, struct error *error);

/* Like vfile_read(), as a vector of at most VFILE_MAX_IOV elements for writev() to the kernel. Longer runs that a
 * source stores unchanged point into its mapping: only the kernel may read them, and its copy fails if the source has
 * been truncated. All other runs are computed in `scratch`, which has room for `length` bytes, each at its own offset
 * in the range: if the range begins a page, each page of `scratch` becomes a page of the file. */
enum { VFILE_MAX_IOV = 256 };
bool vfile_iov(const struct vfile *file, uint64_t offset, size_t length, struct iovec *iov, size_t *ret_count,
               void *scratch, struct error *error);

/* For kept.h, the filter in vfile_read() and vfile_iov(). vfile_compute() is vfile_read() without kept bytes;
 * vfile_append_iov() is vfile_iov() without them, and adds to a vector of `*count` elements; vfile_add_piece() adds
 * bytes of the scratch, which must follow those added before. */
bool vfile_compute(const struct vfile *file, uint64_t offset, size_t length, void *out, struct error *error);
bool vfile_append_iov(const struct vfile *file, uint64_t offset, size_t length, struct iovec *iov, size_t *count,
                      void *scratch, struct error *error);
void vfile_add_piece(struct iovec *iov, size_t *count, const void *bytes, size_t length);

/* Returns the span of a byte, which is inside the file. */
const struct span *vfile_span_at(const struct vfile *file, uint64_t offset);

/* How bytes are made: copied or written by the plan; computed; encoded as blocks of a type whose encoder takes longer
 * than reading the blocks from a disk, such as Q4_K. */
enum vfile_making { MADE_BY_COPYING, MADE_BY_COMPUTING, MADE_SLOWLY };

/* Returns the costliest making of any byte in [offset, offset + length), which is not empty. */
enum vfile_making vfile_making(const struct vfile *file, uint64_t offset, uint64_t length);

/* Adds the stored bytes that [offset, offset + length), inside the file, is computed from (view_depends()). */
void vfile_depends(const struct vfile *file, uint64_t offset, uint64_t length, struct dependencies *to);

/* Names the remote bytes that the range is computed from (source_want()). Never waits. */
void vfile_want(const struct vfile *file, uint64_t offset, uint64_t length, bool urgent);

/* Waits until the range can be read without waiting for a network; fails if its bytes cannot be fetched. Call it before
 * reading, on a thread that nothing else depends on: the threads of pool.h, which compute reads, must not wait. Returns
 * at once for local sources. */
bool vfile_wait(const struct vfile *file, uint64_t offset, uint64_t length, struct error *error);

/* Returns a copy of the file as a source, for readers of formats; the caller closes it. The spans must outlive it. */
struct source *source_of_vfile(const struct vfile *file, const char *name);

/* Returns the approximate time to compute [offset, offset + length), inside the file, on one core in nanoseconds; 0 if
 * its bytes are only copied (convert_cost()). */
uint64_t vfile_read_cost(const struct vfile *file, uint64_t offset, uint64_t length);
