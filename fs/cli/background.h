/* A process that starts in the foreground, where it reports failures, and goes to the background once it is ready. */
#pragma once

#include <stdbool.h>

struct background {
    int ready;     /* pipe to the waiting parent; -1: the process stays in the foreground */
    bool vanished; /* in the parent: the child ended without background_end(), by a signal or when memory ran out, so it
                    * cleaned up nothing */
};

/* Forks. Returns -1 in the child. In the parent, waits until the child is ready or has ended, and returns the status to
 * exit with. Until then, the child reports to the same stderr. */
int background_start(struct background *background);

/* Closes descriptors that wfs inherited, such as a lock, or a pipe whose reader waits for its end: those from 3 on
 * without close-on-exec, which all of wfs's own have. Keeps the descriptors that `paths`, which end with NULL, begin
 * with: /dev/fd/N or /proc/self/fd/N. Does nothing for a process in the foreground. */
void background_close_inherited(const struct background *background, const char *const *paths);

/* Releases the parent: the process leaves its terminal and changes to "/", and reports go to syslog unless stderr is
 * kept. Does nothing for a process in the foreground. */
void background_ready(struct background *background, bool keep_stderr);

/* Tells the parent that the process has cleaned up and ends, with a failure if it was not ready before. Does nothing
 * for a process in the foreground. */
void background_end(struct background *background);
