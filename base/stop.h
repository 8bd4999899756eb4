/* Stopping the work of a thread, for programs that stop calls of the library.
 *
 * Work stops where it would wait or read a source next: that read fails (sources/source.h), and the failure ends the
 * work like any other. So nothing leaks, and what was made once from sources is made again later, as after a network's
 * failure. */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* Makes the calling thread's work stop soon after *flag is other than 0; NULL: nothing stops it. Returns the flag
 * before, so that a caller can restore it. Threads of a pool work under the flag of the pool_run() they help. */
const volatile int *stop_use(const volatile int *flag);

/* Returns the flag of the calling thread; NULL: nothing stops its work. A thread that waits under a flag calls
 * stop_is_due() ten times a second, because nobody wakes it when the flag is set. */
const volatile int *stop_flag(void);

/* Reports whether the work is to stop. If so, counts that, and sets the error, with the code ECANCELED. */
bool stop_is_due(struct error *error);

/* Returns how often stop_is_due() was true in this thread, or for it in a pool's: work between two equal numbers is
 * whole. */
uint64_t stop_count(void);
