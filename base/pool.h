/* Pools of threads for computed ranges that are worth splitting: one sequential reader keeps every core busy.
 *
 * Each thread that reads names the pool that helps it: pool_use(). A program can name one for all its other threads:
 * pool_share(). A thread without a pool does its work alone. A pool's threads start with its first use, which is after
 * any fork of the daemon, and end with the pool. In the child of a fork a pool has no threads: callers do the work. */
#pragma once

#include <stddef.h>

struct pool;

/* Makes a pool of so many threads, the caller's included; 0: one for each core. The most are 64. */
struct pool *pool_new(size_t width);

/* Ends the threads, and waits for them. No pool_run() may be under way. NULL is allowed. */
void pool_free(struct pool *pool);

/* Makes the pool help the calling thread; NULL: the shared one does. Returns the pool that helped it before, so that a
 * caller can restore it. */
struct pool *pool_use(struct pool *pool);

/* Makes the pool help all threads that use no other. For main(), before other threads start. */
void pool_share(struct pool *pool);

/* Calls task(context, i) for every i below n_tasks, on the calling thread and its pool's, and returns when all are
 * done. If memory runs out in a task, the caller's attempt fails, or the process ends (base/attempt.h); some of the
 * other tasks may then not have been called. */
void pool_run(size_t n_tasks, void (*task)(void *context, size_t index), void *context);

/* Returns the most threads that pool_run() uses, the caller's included. */
size_t pool_width(void);
