/* Work that memory may not suffice for.
 *
 * Running out of memory (base/arena.h) ends the process, but within an attempt it ends just the attempt, which fails
 * with an error: one request, not the server. Nothing after the allocation that failed is run. The mutexes that the
 * work holds are released and the arenas that it has made are freed, the last taken first; what it had from malloc
 * is lost.
 *
 * So within an attempt a mutex is locked by attempt_lock(), and what others see - a cache, a table that is made once -
 * is changed only after what it needs has been allocated. What is to stay there although the work around it fails is
 * made in an attempt of its own.
 *
 * Each thread has attempts of its own; one may be made within another. */
#pragma once

#include "base/error.h"

#include <pthread.h>
#include <stddef.h>

/* Calls work(context). False where there was no memory for it. */
bool attempt(void (*work)(void *context), void *context, struct error *error);

/* The same, for who passes it on to another thread: the number of bytes that were wanted and could not be had, or 0. */
size_t attempt_lacking(void (*work)(void *context), void *context);

void attempt_lock(pthread_mutex_t *mutex);
void attempt_unlock(pthread_mutex_t *mutex); /* the one locked last */

/* Something that the innermost attempt gives back where it fails, and leaves alone where it succeeds; part of what it
 * is about. All zeros, it belongs to no attempt. */
struct attempt_part {
    struct attempt_part *next, **place;
    void (*give_back)(struct attempt_part *part);
};

void attempt_add(struct attempt_part *part, void (*give_back)(struct attempt_part *part)); /* without one: nothing */
void attempt_remove(struct attempt_part *part);

/* Ends the innermost attempt of this thread: so many bytes were wanted. Returns where there is none. */
void attempt_fail(size_t n_bytes);
