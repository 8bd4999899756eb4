/* Sources: one read-only run of input bytes each.
 *
 * A source is operations on bytes that are somewhere: a regular file, held open from the moment it was checked
 * (source_file.c), a compressed member of one that is inflated on demand, a text in memory. What one kind cannot do,
 * such as being mapped, it leaves out. A file is read with pread: a truncated file or a medium error is an error for
 * the reader and for nobody else. It is mapped as well, so that the kernel can copy from the mapping
 * (fuse_reply_iov): whoever has source_mapping() never dereferences it. Short runs are gathered from the mapping here,
 * guarded against pages that are lost (base/guarded.h). Everything here may be used from any number of threads.
 *
 * Identity is what stat said when the source was opened: device and inode, size, time of modification. A file that is
 * replaced by a rename, linked or given other permissions is the same, and keeps being served from the open descriptor;
 * ctime therefore does not count. One that was written to or cut has changed, for good, and cannot be read any more:
 * what had been read of it before and what is in it now do not belong together. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct source;

/* Opens `path` relative to the directory `directory` (AT_FDCWD: the working directory). Only regular files: what a path
 * leads to is looked at before it is opened for reading, so that no device is ever started and no FIFO waited for.
 * `name` is what messages call it. NULL on failure. */
struct source *source_open(int directory, const char *path, const char *name, struct error *error);

/* The same in two steps, for who wants to know first where the path leads. source_find() gives a descriptor of the file
 * that nothing can be read through (O_PATH), to be closed by the caller, or -1; source_found_path() where that file is
 * by the kernel's account, in memory that the caller frees, or NULL. */
int source_find(int directory, const char *path, const char *name, struct error *error);
char *source_found_path(int found);
struct source *source_open_found(int found, const char *name, struct error *error);

/* A file of that identity which cannot be opened: as long as it is, and each read fails with `reason`. */
struct source *source_unopened(const struct stat *identity, const char *name, const char *reason);

/* What a kind of source can do. Each is called from any number of threads, and only with ranges inside the source. All
 * but the first two may be NULL. */
struct source_ops {
    bool (*read)(void *context, uint64_t offset, size_t length, void *out, struct error *error);
    void (*release)(void *context); /* frees the context */

    /* Runs, as source_read_runs(); false, without an error, where they are to be read one by one. */
    bool (*gather)(void *context, uint64_t offset, uint64_t count, size_t length, uint64_t stride, unsigned char *out);

    const void *(*map)(void *context, uint64_t offset, uint64_t length); /* as source_mapping() */
    void (*prefetch)(void *context, uint64_t offset, uint64_t length);   /* as source_prefetch() */
    /* what it is now; false where that is not known */
    bool (*identify)(void *context, struct stat *ret_identity);
    int (*watch)(void *context, int inotify); /* as source_watch() */
};

/* A source that belongs to a file, `base`, which must live longer: a member that is computed, a text that is derived.
 * The identity is that of the file. Takes the context. */
struct source *source_new(const struct source *base, const char *name, uint64_t size, const struct source_ops *ops,
                          void *context);

/* A source that is a file of that identity, and as long. Takes the context. */
struct source *source_new_file(const struct stat *identity, const char *name, const struct source_ops *ops,
                               void *context);

/* A source made of memory, for side files that are derived from others: a copy of the text. `base` as above. */
struct source *source_of_text(const struct source *base, const char *name, const char *text, size_t length);

void source_close(struct source *source); /* NULL is allowed */

const char *source_name(const struct source *source);
uint64_t source_size(const struct source *source);
struct timespec source_mtime(const struct source *source);
mode_t source_permissions(const struct source *source); /* 0777 at most, when it was opened */
gid_t source_group(const struct source *source);

/* Whether both are the same file (device and inode). */
bool source_same_file(const struct source *a, const struct source *b);

/* Reads exactly [offset, offset + length); a range outside the source, or bytes that are gone, is an error. */
bool source_read(const struct source *source, uint64_t offset, size_t length, void *out, struct error *error);

/* Reads `count` runs of `length` bytes, `stride` bytes from the start of one to the start of the next, packed: a column
 * of a matrix. Short runs of a mapped file are gathered from the mapping; what is gone is an error as above. */
bool source_read_runs(const struct source *source, uint64_t offset, uint64_t count, size_t length, uint64_t stride,
                      void *out, struct error *error);

/* The whole source as a NUL-terminated text in memory that the caller frees; refused above `limit` bytes. */
char *source_read_text(const struct source *source, size_t limit, size_t *ret_length, struct error *error);

/* Whether something was made of its text: source_read_text() was called for it. */
bool source_was_consulted(const struct source *source);

/* Where the bytes [offset, offset + length) are mapped, to be handed to the kernel; NULL where they are not, or where
 * the file does not reach that far any more: the kernel would find zeros on its last page. Pages that the kernel copied
 * from stay in our page tables, and count as our memory, until some more have been handed out: then they are given
 * back. */
const void *source_mapping(struct source *source, uint64_t offset, uint64_t length);

/* Tells the kernel that [offset, offset + length) will be wanted soon. */
void source_prefetch(const struct source *source, uint64_t offset, uint64_t length);

/* Whether it is a file of its own, not computed from one. */
bool source_is_file(const struct source *source);

/* Whether the source has changed since it was opened. What is known takes a load; the kernel is asked as well where
 * that was last done more than SOURCE_CHECK_MS ago. A computed source has changed when the file it belongs to is known
 * to have. */
enum { SOURCE_CHECK_MS = 10 };
bool source_changed(const struct source *source);

/* For a message about a change: ": it has 5 bytes now, and had 8", or nothing where it is as long as before. Returns
 * `out`. */
enum { SOURCE_CHANGE = 80 };
const char *source_change(const struct source *source, char out[SOURCE_CHANGE]);

/* As source_changed(), and the kernel is asked in any case, or in none. */
bool source_verify(const struct source *source);
bool source_known_changed(const struct source *source);

/* Says that it has changed, on other evidence: source_watch(). */
void source_mark_changed(const struct source *source);

/* Lets the open inotify instance tell when somebody writes to the file or cuts it, by whatever name. Returns the number
 * of the watch, or -1: then source_changed() is what is left. */
int source_watch(const struct source *source, int inotify);
