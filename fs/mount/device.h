/* Mounting: a descriptor of /dev/fuse that shows a mount. Another process than the one that mounts may serve it. */
#pragma once

#include "base/error.h"
#include "fs/mount/session_options.h"

/* Mounts at an absolute path, by fusermount3 for ordinary users. Returns the descriptor, or -1. Redirects stderr
 * meanwhile, so only a process with one thread may call it. */
int device_mount(const char *mountpoint, const struct session_options *options, struct error *error);

/* Returns the options for libfuse, with commas and backslashes in the source's name escaped; the caller frees them. */
char *device_options(const struct session_options *options);

/* Makes libfuse keep its last message instead of printing it, and returns that message; "" if there is none. */
void device_keep_words(void);
const char *device_words(void);
void device_forget_words(void);
