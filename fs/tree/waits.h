/* Threads for work that may wait for a network or for a plan, so that stalled work delays no other work and no thread
 * of a server. Each piece of work has a thread of its own, up to a limit; more of it queues. Threads start when work
 * comes and end when they have nothing to do; four stay. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct waits;

struct waits *waits_new(size_t most_threads);

/* Calls work(context) on one of the threads. Returns false, and does not take the work, if no thread or no memory can
 * be had, or after waits_end(). Safe from any thread. */
typedef void wait_work(void *context);
bool waits_add(struct waits *waits, wait_work *work, void *context);

/* Takes no more work, and waits until all that was taken is done: call arrival_give_up() (base/arrival.h) before, so
 * that work which waits for a network fails at once. */
void waits_end(struct waits *waits);

void waits_free(struct waits *waits); /* after waits_end(), or if no work was ever taken */

/* Threads for work that may take long: one for each piece, 64 at most, so that a slow piece holds up only the callers
 * that wait for it; further pieces queue. Threads start with the first piece, which is after any fork of the daemon,
 * and end when no work is left. Memory that the work has freed then returns to the system. */

struct planner;

struct planner *planner_new(void);

/* Drops the work that has not begun, and waits for the rest. NULL is allowed. */
void planner_free(struct planner *planner);

/* Calls task(context, item) soon, on another thread, unless planner_free() comes first. Returns false, and never calls
 * it, if no thread or no memory can be had. */
typedef void planner_task(void *context, void *item);
bool planner_add(struct planner *planner, planner_task *task, void *context, void *item);
