/* Kept bytes: what was computed for a virtual file is read from the store (remote/store.h) from then on, by every
 * process of the user that shows the same inputs.
 *
 * This is a filter between a vfile and its readers, which call vfile_read(), vfile_iov() and vfile_wait() as before. A
 * granule of the store is kept once all its pages have been computed, in any order and by any number of reads. Threads
 * that read copy their bytes into a queue (keeper.h) and never wait for the disk. A granule that is missing, evicted or
 * damaged is computed again.
 *
 * Kept bytes are those that wfs would compute now:
 *
 * - The key of a file is a SHA-256 of its identity (identity.h), the change times of its inputs' inodes, the build of
 *   this program, and the plan: the header's bytes, and the place, encoding, importances and first stored bytes of each
 *   tensor. So a file that was replaced, also by one of equal size and time, has another key.
 * - A granule is kept only if no input has changed between opening it and a check after the granule was computed.
 * - Nothing is kept while the newest input is younger than KEPT_AGE, since another write could leave its time as it is:
 *   file systems count time in steps of up to 2 seconds, and a writer's mapping sets no new time until the kernel has
 *   written its page back.
 *
 * With KEEP_QUANTIZED the store has scales instead of most of the bytes (kept_scales.h).
 *
 * Once all granules of a file that can be made again at any time are kept as bytes, the file is sealed
 * (remote/sealed.h): its other bytes are added, and the next mount may let the kernel read it (fs/mount/passthrough.h).
 *
 * Two changes stay unseen: a write through a mapping more than KEPT_AGE after the first write to the same page, where
 * nothing writes pages back (tmpfs), and one that sets the clock back. */
#pragma once

#include "base/encodings.h"
#include "fs/tree/vfile.h"

#include <nettle/sha2.h>
#include <time.h>

enum { KEPT_AGE = 60 /* seconds */ };

/* What is kept: sizes alone (kept_files.h); nothing; what K and IQ types and others that take long to encode
 * (MADE_SLOWLY in vfile.h) are computed from, where it is less (kept_scales.h), else their bytes; their bytes; all
 * bytes that are computed. Scales are kept only of files that can be made again at any time, and make no sealed file.
 */
enum keep { KEEP_SIZES, KEEP_NONE, KEEP_QUANTIZED, KEEP_WHOLE, KEEP_ALL };

/* What is kept of one file. */
struct kept;

/* Makes a file again, for as long as what is kept of it lives. */
typedef bool kept_remake(void *context, struct vfile *ret_file);

struct kept_request {
    enum keep keep;
    const char *identity;   /* the file's (identity.h) */
    const char *name;       /* of the file, for lists of the store */
    struct timespec newest; /* the time of the newest input that is not in the file's origin */
    kept_remake *remake;    /* called by the keeper's thread after kept_begin(); NULL: never sealed, and no scales */
    void *context;
};

/* Returns what kept bytes are called in lists of the store: the model, by an absolute path if it is local, and a path
 * in its tree. */
const char *kept_name(const char *model, const char *path, struct arena *arena);

/* Returns the time of the newest input in seconds: of the origin, or `newest`. */
time_t kept_newest(const struct origin *origin, struct timespec newest);

/* Reports whether another write to an input would change its time, which is that of the newest. */
bool kept_is_settled(time_t newest);

/* Returns what is kept of a file; NULL: nothing ever is. The origin must outlive it; the spans need not. */
struct kept *kept_new(const struct vfile *file, const struct kept_request *request);

/* Seals the file once it is complete, which it may be now. NULL is allowed. */
void kept_begin(struct kept *kept);

/* Returns the descriptor of the sealed file, valid until kept_free(); -1: there was none when `kept` was made, or it is
 * damaged. The first call compares all of it with its CRCs: who has the descriptor reads without them. NULL is allowed.
 */
int kept_sealed_descriptor(struct kept *kept);

/* Waits until what is queued is on disk; a file that is being sealed is left unsealed. NULL is allowed. */
void kept_free(struct kept *kept);

/* Like vfile_read() and vfile_iov(), for a file with kept bytes. */
bool kept_read(const struct vfile *file, uint64_t offset, size_t length, void *out, struct error *error);
bool kept_iov(const struct vfile *file, uint64_t offset, size_t length, struct iovec *iov, size_t *ret_count,
              void *scratch, struct error *error);

/* Reports whether all bytes of [offset, offset + length) seem to be kept; if `is_sure`, compares it with the CRCs.
 * Returns false for a file without kept bytes, and for bytes of which scales are kept: they need the source. */
bool kept_has(const struct vfile *file, uint64_t offset, uint64_t length, bool is_sure);

/* The keys of kept bytes (kept.h). */

/* Writes the key of a file with that identity (identity.h) as hex digits. Reads no weight. */
void kept_key(const struct vfile *file, const char *identity, char key[SHA256_HEX + 1]);

/* Begins a key with what all keys begin with, for kept bytes with that identity and those inputs, and ends it. */
void kept_key_begin(struct sha256_ctx *hash, const struct origin *origin, const char *identity);
void kept_key_end(struct sha256_ctx *hash, char key[SHA256_HEX + 1]);
