/* Threads for work that may take long: one for each piece, 64 at most, so that a slow piece holds up only the callers
 * that wait for it; further pieces queue. Threads start with the first piece, which is after any fork of the daemon,
 * and end when no work is left. Memory that the work has freed then returns to the system. */
#pragma once

#include <stdbool.h>

struct planner;

struct planner *planner_new(void);

/* Drops the work that has not begun, and waits for the rest. NULL is allowed. */
void planner_free(struct planner *planner);

/* Calls task(context, item) soon, on another thread, unless planner_free() comes first. Returns false, and never calls
 * it, if no thread or no memory can be had. */
typedef void planner_task(void *context, void *item);
bool planner_add(struct planner *planner, planner_task *task, void *context, void *item);
