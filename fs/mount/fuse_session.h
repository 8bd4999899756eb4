/* A mount that is being served: the device, the worker threads, and the signals of the process.
 *
 * Threads exist only inside session_serve(), so a process forks before it. */
#pragma once

#include "fs/mount/fuse_ops.h"
#include "fs/mount/session_options.h"

#include <signal.h>

struct session;

/* Mounts at an absolute path, or takes over the mounted descriptor that /dev/fd/N stands for. Blocks the signals that
 * session_serve() waits for: SIGINT, SIGTERM, SIGHUP, SIGCHLD. */
struct session *session_new(const struct served *served, const char *mountpoint, const struct session_options *options,
                            struct error *error);

/* Unmounts, if that has not been done, and frees. */
void session_free(struct session *session);

struct session_events {
    void (*ready)(void *context);                            /* once: the mount answers */
    void (*signalled)(void *context, const siginfo_t *info); /* never two at a time */
    void *context;
};

/* Serves until it is unmounted and its last user has left. */
bool session_serve(struct session *session, const struct session_events *events, struct error *error);
