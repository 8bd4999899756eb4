/* A small pool of threads for computed ranges that are worth splitting: one sequential reader keeps every core busy.
 * The threads start with the first use, which is after any fork of the daemon, and never end. */
#pragma once

#include <stddef.h>

/* Calls task(context, i) for every i below n_tasks, on the calling thread and the pool's, and returns when all are
 * done. If memory runs out in a task, the caller's attempt fails, or the process ends (base/attempt.h); some of the
 * other tasks may then not have been called. */
void pool_run(size_t n_tasks, void (*task)(void *context, size_t index), void *context);

/* Returns the most threads that pool_run() uses, the caller's included: one for each core, 64 at most. */
size_t pool_width(void);
