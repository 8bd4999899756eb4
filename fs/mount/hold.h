/* Holds: a server's shared lock on the directory under its mount, from before it mounts until its sources are closed.
 * The lock tells other processes whether the server still runs, however it ended, without touching the mount. If the
 * directory cannot be opened or locked, there is no hold, and no process waits. */
#pragma once

#include <stdbool.h>

/* Takes a hold, beside any others; waits a second at most for a hold_take_over(). Returns a descriptor to close, or
 * -1. */
int hold_take(const char *path);

/* Waits `milliseconds` at most until no process holds the directory. Returns a descriptor that prevents holds until it
 * is closed, or -1 with errno, which is EWOULDBLOCK if a process still holds it. */
int hold_take_over(const char *path, int milliseconds);

/* Reports whether the path, not followed if a link, still names the held directory. */
bool hold_is_of(int hold, const char *path);
