/* Threads for work that may take long: one for each piece, as far as there are threads to be had, so that a slow piece
 * holds up only those who wait for it. Threads start with the first piece, so after any fork of the daemon, and end
 * when there is nothing left; what the work has allocated and freed goes back to the system then. */
#pragma once

#include <stdbool.h>

struct planner;

struct planner *planner_new(void);

/* Waits until the work that was begun has ended; what was not begun is dropped. NULL is allowed. */
void planner_free(struct planner *planner);

/* Calls task(context, item) soon, on another thread. False where no thread or no memory can be had: then it is never
 * called. */
typedef void planner_task(void *context, void *item);
bool planner_add(struct planner *planner, planner_task *task, void *context, void *item);
