/* A process that goes on in the background once it is ready, and fails in the foreground until then. */
#pragma once

#include <stdbool.h>

struct background {
    int ready; /* pipe to the waiting parent; -1: stays in the foreground */
};

/* Forks. Returns -1 in the child, which goes on; in the parent, when the child is ready or has ended, the status to
 * exit with. What the child reports until then goes to the same stderr. */
int background_start(struct background *background);

/* Lets the parent go: no terminal any more, reports go to syslog unless stderr is kept. Does nothing for a process in
 * the foreground. */
void background_ready(struct background *background, bool keep_stderr);
