/* Waiting for bytes that arrive from elsewhere, such as a network.
 *
 * One lock and one condition serve the whole process: waits are rare and long. The code that fetches bytes publishes
 * them and then calls arrival_announce(); every waiter then looks again whether its own bytes are here. Threads that
 * others depend on, such as those of base/pool.h, never wait here. */
#pragma once

#include "base/error.h"

#include <stdatomic.h>
#include <time.h>

/* Waits until is_here(context) returns true. Fails if the calling thread's reader is interrupted (code EINTR), after
 * arrival_give_up() or when the thread's work is to stop (stop.h; code ECANCELED), or at `deadline`, an absolute time
 * of CLOCK_MONOTONIC (code ETIMEDOUT); NULL sets no deadline. The message gives the reason alone: the caller puts the
 * name of the file before it.
 *
 * `is_here` is called with the lock held: it must not allocate, wait, or call functions of this header. It may take a
 * lock that no thread holds while it calls functions of this header. */
bool arrival_wait(bool (*is_here)(void *context), void *context, const struct timespec *deadline, struct error *error);

/* Wakes all waiters to look again. Call it after publishing bytes or a failure to get them. */
void arrival_announce(void);

/* Makes later waits of the calling thread fail once *interrupted is true; NULL ends that. The thread that sets the flag
 * calls arrival_announce() afterwards. The flag must live until the next call. */
void arrival_set_reader(const atomic_bool *interrupted);

/* Makes every wait fail at once, those under way and all later ones: the process or its mount ends. */
void arrival_give_up(void);
