/* Holds: a shared lock that a server has on the directory under its mount, from before it mounts until its sources are
 * closed. Others tell by it whether the holder is still there, however it ended; the mount itself is never touched for
 * it. Where a directory cannot be opened or locked there is no hold, and nobody waits. */
#pragma once

#include <stdbool.h>

/* Takes a hold, beside those of others. Returns a descriptor, to be closed at the end, or -1. */
int hold_take(const char *path);

/* Waits until nobody holds the directory, `milliseconds` at most. Returns a descriptor that keeps others from holding
 * it until it is closed, or -1: with errno EWOULDBLOCK where somebody still holds it. */
int hold_take_over(const char *path, int milliseconds);

/* Reports whether the path still leads to the directory. */
bool hold_is_of(int hold, const char *path);
