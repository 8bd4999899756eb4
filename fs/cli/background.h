/* A process that goes on in the background once it is ready, and fails in the foreground until then. */
#pragma once

#include <stdbool.h>

struct background {
    int ready; /* pipe to the waiting parent; -1: stays in the foreground */
};

/* Forks. Returns -1 in the child, which goes on; in the parent, when the child is ready or has ended, the status to
 * exit with. What the child reports until then goes to the same stderr. */
int background_start(struct background *background);

/* Closes the descriptors that the caller left open: a pipe whose end somebody waits for, a lock. They are those from 3
 * on that an exec would not close, since it closes each one of our own. Those that a path stands for (/dev/fd/N and
 * what is below it) stay: `paths` ends with NULL. Does nothing for a process in the foreground. */
void background_close_inherited(const struct background *background, const char *const *paths);

/* Lets the parent go: no terminal any more, reports go to syslog unless stderr is kept. Does nothing for a process in
 * the foreground. */
void background_ready(struct background *background, bool keep_stderr);
