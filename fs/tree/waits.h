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

/* Calls drop(context) for the work that no thread has begun, and waits for the rest: call arrival_give_up()
 * (base/arrival.h) before. Later work is not taken. */
void waits_end(struct waits *waits, wait_work *drop);

void waits_free(struct waits *waits); /* after waits_end(), or if no work was ever taken */
