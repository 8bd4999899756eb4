/* The mount that this process has made, wherever it is now: it may have been moved, detached, or covered by another one
 * of any kind. Its path alone does not tell; its number and its device in the kernel's table of mounts do. */
#pragma once

#include "fs/mount/mountpoint.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct own_mount {
    unsigned device_major, device_minor;
    int number;          /* in the kernel's table; 0: unknown, as for a descriptor that another process has mounted */
    char path[PATH_MAX]; /* where it was made, for messages */
};

/* Finds the mount that has just been made at an absolute path. */
struct own_mount own_mount_at(const char *path);

/* Detaches the mount like mountpoint_detach(), and no other. True if it is detached already. Fails if another mount is
 * on it or in it, which would be detached, too. */
bool own_mount_detach(const struct own_mount *own, enum detach how, struct error *error);

/* Notices that a mount has been detached by others: `umount -l` leaves it to its readers, who may wait for a network
 * that no longer answers.
 *
 * A thread of its own waits until the kernel's table of mounts has no entry with the mount's device. */

struct detachment;

/* Calls detached() once, when the mount is in no place of this process' mount namespace any more. Returns NULL if that
 * cannot be watched. */
struct detachment *detachment_watch(unsigned device_major, unsigned device_minor, void (*detached)(void));

/* Ends the watch; NULL is allowed. */
void detachment_free(struct detachment *detachment);
