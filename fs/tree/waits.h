/* Threads for work that may take long, or wait for a network or a plan, so that slow work delays no other work and no
 * thread of a server. Each piece of work has a thread of its own, up to a limit; more of it queues. Threads start when
 * work comes, which is after any fork of the daemon, and end when they have nothing to do. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct waits;

/* At most `most_idle` threads stay without work: for callers that bring one piece of work after another. If none stays,
 * the last thread returns the memory that the work has freed to the system before it ends. */
enum { WAITS_IDLE = 4 }; /* so a sequential reader needs no new thread for each read */
struct waits *waits_new(size_t most_threads, size_t most_idle);

/* Calls work(context, item) on one of the threads. Returns false, and does not take the work, if no thread or no memory
 * can be had, or after waits_end(). Safe from any thread. */
typedef void wait_work(void *context, void *item);
bool waits_add(struct waits *waits, wait_work *work, void *context, void *item);

/* Takes no more work, and waits until all that was taken is done: call arrival_give_up() (base/arrival.h) before, so
 * that work which waits for a network fails at once. */
void waits_end(struct waits *waits);

/* Like waits_end(), but drops the work that no thread has begun. */
void waits_drop(struct waits *waits);

void waits_free(struct waits *waits); /* after waits_end() or waits_drop(), or if no work was ever taken */
