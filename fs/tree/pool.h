/* A small pool of threads for computed ranges that are worth splitting: one sequential reader keeps every core busy.
 * The threads start with the first use, so after any fork of the daemon. */
#pragma once

#include <stddef.h>

/* Calls task(context, i) for every i below n_tasks, on the calling thread and the pool's, and returns when all are
 * done. Where there is no memory for a task, it is as if the caller had wanted it (base/arena.h); some of the others
 * are not called then. */
void pool_run(size_t n_tasks, void (*task)(void *context, size_t index), void *context);

/* Number of threads that pool_run() uses, the caller's included. */
size_t pool_width(void);
