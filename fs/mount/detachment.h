/* Notices that a mount has been detached by others: `umount -l` leaves it to its readers, who may wait for a network
 * that no longer answers.
 *
 * A thread of its own waits until the kernel's table of mounts has no entry with the mount's device. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct detachment;

/* Calls detached() once, when the mount is in no place of this process' mount namespace any more. Returns NULL if that
 * cannot be watched. */
struct detachment *detachment_watch(unsigned device_major, unsigned device_minor, void (*detached)(void));

/* Ends the watch; NULL is allowed. */
void detachment_free(struct detachment *detachment);
