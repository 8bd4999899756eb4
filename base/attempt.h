/* Work that may run out of memory.
 *
 * Running out of memory (base/arena.h) ends the process, but within an attempt it ends only the attempt, which fails
 * with an error: one request, not the server. No code after the failed allocation runs. The attempt releases the
 * locks that attempt_lock() took and frees the arenas that it made, in reverse order; memory from malloc leaks.
 *
 * An attempt cannot end while the work holds another lock (base/lock.h), or between attempt_forbid() and
 * attempt_allow(): then the process ends. It also ends where a thread makes no attempt, as that of remote/http.c.
 *
 * Under attempt_lock(), change shared state, such as a cache, only after every allocation for the change has succeeded.
 * State that must survive a failure of the surrounding work needs an attempt of its own.
 *
 * Each thread has attempts of its own; one may be made within another. */
#pragma once

#include "base/error.h"
#include "base/lock.h"

#include <stddef.h>

/* Calls work(context). Returns false, with the error, if memory ran out. */
bool attempt(void (*work)(void *context), void *context, struct error *error);

/* Like attempt(), for callers that hand a failure to another thread: returns the number of bytes that could not be
 * allocated, or 0. */
size_t attempt_lacking(void (*work)(void *context), void *context);

void attempt_lock(struct lock *lock);
void attempt_unlock(struct lock *lock); /* the one locked last; an attempt holds at most 8 */

/* Between these two, running out of memory ends the process, unless the work is an attempt made after attempt_forbid():
 * others wait for what this thread has promised. They nest, and both are called within the same attempt. */
void attempt_forbid(void);
void attempt_allow(void);

/* A resource that the innermost attempt releases if it fails and keeps if it succeeds; a member of the resource's own
 * structure. Zeroed, it belongs to no attempt. */
struct attempt_part {
    struct attempt_part *next, **place;
    void (*give_back)(struct attempt_part *part);
};

void attempt_add(struct attempt_part *part,
                 void (*give_back)(struct attempt_part *part)); /* no effect outside an attempt */
void attempt_remove(struct attempt_part *part);

/* Ends this thread's innermost attempt, because `n_bytes` could not be allocated. Returns if there is no attempt, or
 * it may not end. */
void attempt_fail(size_t n_bytes);
