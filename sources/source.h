/* Sources: one read-only run of input bytes each.
 *
 * A source is a table of operations on bytes: of a regular file, held open from the moment it was checked
 * (source_file.c), of compressed members that are inflated on demand, of a text in memory, of an object on a server. A
 * kind leaves out operations that it lacks, such as mapping. Locations open sources by name (location.h). A file is
 * read with pread: a truncated file or a medium error fails the read and nothing else. It is also mapped, so that the
 * kernel can copy from the mapping (fuse_reply_iov): callers of source_mapping() never dereference it. Short runs are
 * gathered from the mapping here, guarded against lost pages (base/guarded.h). All functions may be called from any
 * number of threads.
 *
 * A source keeps the identity that it had when it was opened: key, size, time of modification. Renaming a file,
 * replacing it by a rename, linking it or changing its permissions does not change the source, which reads the open
 * descriptor; ctime therefore does not count. Writing to the file or truncating it does, for good: source_read() then
 * fails, since bytes read before and after the change do not belong together. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct source;

/* Identifies the bytes of a source: sources with the same key, size and time of modification have the same bytes. */
struct source_identity {
    uint64_t key[2]; /* where the bytes are: device and inode of a file */
    uint64_t size;
    struct timespec mtime;
    struct timespec changed; /* when a file's inode changed (ctime); zero: not a local file */
    mode_t permissions;      /* 0777 at most */
    gid_t group;
};

/* Makes a source of that identity that cannot be opened: each read fails with `reason`, which is copied. */
struct source *source_unopened(const struct source_identity *identity, const char *name, const char *reason);

/* What is known of a remote source. The texts live as long as the source; all but the URL may be NULL. */
struct source_server {
    const char *url;      /* as a user would write it, without a query */
    const char *revision; /* the commit of a model on the hub */
    const char *sha256;   /* of the bytes, as the server states it, in 64 digits */
};

/* The operations of a kind of source. Any number of threads call them, and only with ranges inside the source. All but
 * the first two may be NULL. */
struct source_ops {
    bool (*read)(void *context, uint64_t offset, size_t length, void *out, struct error *error);
    void (*release)(void *context); /* frees the context */

    /* Like source_read_runs(); returns false, without an error, if the runs must be read one by one. */
    bool (*gather)(void *context, uint64_t offset, uint64_t count, size_t length, uint64_t stride, unsigned char *out);

    const void *(*map)(void *context, uint64_t offset, uint64_t length); /* like source_mapping() */
    /* like source_want() */
    void (*want)(void *context, uint64_t offset, uint64_t length, bool urgent);
    /* like source_wait(); only a remote source has it */
    bool (*wait)(void *context, uint64_t offset, uint64_t length, struct error *error);
    /* like source_server() and source_cached(); only a remote source has them */
    void (*server)(void *context, struct source_server *ret_server);
    uint64_t (*cached)(void *context);
    /* has the store keep all bytes under their hash, which is right, or drop them for a reason (source_confirm()) */
    void (*seal)(void *context);
    void (*discard)(void *context, const struct error *reason);
    /* gets its identity now; returns false if unknown */
    bool (*identify)(void *context, struct source_identity *ret_identity);
    int (*descriptor)(void *context); /* like source_descriptor(); only a regular file has it */
};

/* Makes a source that belongs to a file, `base`, which must outlive it: a computed member or a derived text. It has the
 * file's identity. Takes the context. */
struct source *source_new(const struct source *base, const char *name, uint64_t size, const struct source_ops *ops,
                          void *context);

/* Makes a source with an identity of its own, which holds its size. Takes the context. */
struct source *source_new_file(const struct source_identity *identity, const char *name, const struct source_ops *ops,
                               void *context);

/* Makes a source of the bytes [offset, offset + size) of `base`, which must have them and outlive it: a file that lies
 * uncompressed in another one. */
struct source *source_range_new(struct source *base, const char *name, uint64_t offset, uint64_t size);

/* Makes a source from a copy of a text, for derived side files. `base` as in source_new(). */
struct source *source_of_text(const struct source *base, const char *name, const char *text, size_t length);

void source_close(struct source *source); /* NULL is allowed */

/* Returns the context of a source with these operations; NULL for any other source. */
const void *source_context(const struct source *source, const struct source_ops *ops);

const char *source_name(const struct source *source);
uint64_t source_size(const struct source *source);
struct timespec source_mtime(const struct source *source);
mode_t source_permissions(const struct source *source); /* 0777 at most, when it was opened */
gid_t source_group(const struct source *source);

/* Appends the identity of the source's bytes, as bytes for a hash: name, size, and the key and time of modification of
 * its file. */
void source_append_identity(const struct source *source, struct buffer *out);

/* Appends when the inode of the source's file had changed when it was opened: another time if the file was written to
 * or replaced, even by one of equal identity, and also if it was only renamed, linked or given other permissions. */
void source_append_change(const struct source *source, struct buffer *out);

/* Reports whether both are the same file, by their keys. */
bool source_same_file(const struct source *a, const struct source *b);

/* Reads exactly [offset, offset + length); a range outside the source, or missing bytes, is an error. Also fails if the
 * source has changed by the end of the read, which may then have found new bytes, and if the thread's work is to stop
 * (base/stop.h). */
bool source_read(const struct source *source, uint64_t offset, size_t length, void *out, struct error *error);

/* Reads `count` runs of `length` bytes, `stride` bytes from the start of one to the start of the next, packed: a column
 * of a matrix. Short runs of a mapped file are gathered from the mapping. Errors as for source_read(). */
bool source_read_runs(const struct source *source, uint64_t offset, uint64_t count, size_t length, uint64_t stride,
                      void *out, struct error *error);

/* The first bytes of a Git LFS pointer, the text in a clone instead of a file that was not fetched, and the message
 * about such a file. */
#define GIT_LFS_BEGINNING "version https://git-lfs"
#define GIT_LFS_REFUSAL   "a Git LFS pointer, not the file itself; 'git lfs pull' fetches the file"

/* Fails if the source is a Git LFS pointer or cannot be read. Readers call it first. */
bool source_check_fetched(const struct source *source, struct error *error);

/* Reads the whole source as a NUL-terminated text in memory that the caller frees; fails above `limit` bytes, and for
 * Git LFS pointers. */
char *source_read_text(const struct source *source, size_t limit, size_t *ret_length, struct error *error);

/* The two halves of source_read_text(), for memory of the caller's: fail above `limit` bytes; read all bytes, and fail
 * for Git LFS pointers. */
bool source_check_size(const struct source *source, size_t limit, struct error *error);
bool source_read_whole(const struct source *source, char *to, struct error *error);

/* Returns the mapping of the bytes [offset, offset + length), to hand to the kernel; NULL if they are not mapped, or if
 * the file has changed: on the last page of a shortened file the kernel would find zeros. Pages that the kernel copied
 * from count as this process's memory until later calls release them. */
const void *source_mapping(struct source *source, uint64_t offset, uint64_t length);

/* Announces bytes that will be read soon, so that reading them takes less time; `urgent` means that a reader waits for
 * them. Never blocks. Ignores the part of [offset, offset + length) past the end. */
void source_want(const struct source *source, uint64_t offset, uint64_t length, bool urgent);

/* Waits until the bytes [offset, offset + length), inside the source, can be read without waiting; fails if they cannot
 * be fetched. Returns true at once for a source that is not remote. source_read() waits by itself if need be: call
 * source_wait() before a thread that others depend on reads. */
bool source_wait(const struct source *source, uint64_t offset, uint64_t length, struct error *error);

/* Reports whether the bytes arrive from elsewhere: reading them may take as long as a network does. */
bool source_is_remote(const struct source *source);

/* Returns how many reads and waits of this thread have failed because a remote source could not be reached, or were
 * stopped (base/stop.h); a later one may succeed. Code that keeps what it makes from sources compares the numbers
 * before and after, since the error may have been replaced on its way. */
uint64_t source_unreached(void);
void source_count_unreached(void); /* one more: for this thread, which depends on another one's failure */

/* Reports whether this process has ever made a remote source. If not, no read has to wait. */
bool source_any_remote(void);

/* Gets what is known of a remote source; returns false for others. */
bool source_server(const struct source *source, struct source_server *ret_server);

/* Compares the SHA-256 of all bytes of the source, in 64 digits, with what its server states. If they differ, removes
 * the bytes from the store and fails, as do all later reads. If they agree, and `seal` is set, has the store keep the
 * bytes for all servers that state this hash. True for a source whose server states nothing. */
bool source_confirm(const struct source *source, const char *sha256, bool seal, struct error *error);

/* Returns how many bytes can be read without a network. */
uint64_t source_cached(const struct source *source);

/* Reports whether the source is a file (or object) of its own, not computed from one. */
bool source_is_file(const struct source *source);

/* Reports whether the source has changed since it was opened, as a hint: loads the known state, and asks the kernel if
 * it was last asked more than SOURCE_CHECK_MS ago. Use source_verify() before bytes or an identity are handed out. A
 * computed source has changed when the file it belongs to is known to have. */
enum { SOURCE_CHECK_MS = 10 };
bool source_changed(const struct source *source);

/* Writes text for a message about a change: ": it has 5 bytes, and had 8", or "" if the size is the same. Returns
 * `out`. */
enum { SOURCE_CHANGE = 80 };
const char *source_change(const struct source *source, char out[SOURCE_CHANGE]);

/* Like source_changed(), but source_verify() always asks the kernel, and source_known_changed() never does. */
bool source_verify(const struct source *source);
bool source_known_changed(const struct source *source);

/* Marks the source as changed, on other evidence such as source_watch(). */
void source_mark_changed(const struct source *source);

/* Returns the descriptor of the regular file that holds the source's bytes and nothing else, open for reading alone; it
 * is the source's. -1: there is none. */
int source_descriptor(const struct source *source);

/* Like opener_watch(), for the file of source_descriptor(). -1: only source_changed() tells. */
int source_watch(const struct source *source, int inotify);
