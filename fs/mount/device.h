/* Mounting: a descriptor of /dev/fuse that shows a mount. Another process than the one that mounts may serve it. */
#pragma once

#include "base/error.h"
#include "fs/mount/session_options.h"

#include <fuse_lowlevel.h>

/* Mounts at an absolute path, by fusermount3 for ordinary users. Returns the descriptor, or -1. Redirects stderr
 * meanwhile, so only a process with one thread may call it. */
int device_mount(const char *mountpoint, const struct session_options *options, struct error *error);

/* Returns the options for libfuse, with commas and backslashes in the source's name escaped; the caller frees them. */
char *device_options(const struct session_options *options);

/* Makes libfuse keep its last message instead of printing it, and returns that message; "" if there is none. */
void device_keep_words(void);
const char *device_words(void);
void device_forget_words(void);

/* fusermount3, which mounts and unmounts for ordinary users. Its messages go into our errors instead of to stderr. */

/* Calls fuse_session_mount(), which starts fusermount3 if necessary. `words` gets the last line of its messages, or "".
 * Redirects stderr meanwhile, so only a process with one thread may call it. */
enum { FUSERMOUNT_WORDS = 256 };
bool fusermount_mount(struct fuse_session *fuse, const char *path, char words[FUSERMOUNT_WORDS]);

/* Unmounts by fusermount3, and waits for it; the error has its last line. Lazy as `umount -l`. */
bool fusermount_unmount(const char *path, bool lazy, struct error *error);

/* Names the obstacle that keeps the system from mounting, with the remedy. */

/* Sets the error for a mount that failed: the obstacle that it finds, or else `words`, the message of fusermount3 or
 * libfuse. Returns false. */
bool obstacle_explain(const char *mountpoint, const char *words, struct error *error);
