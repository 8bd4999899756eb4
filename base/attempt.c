#include "base/attempt.h"

#include <assert.h>
#include <setjmp.h>

enum { MAX_HELD = 8 }; /* mutexes that one thread holds at a time */

struct attempt {
    struct attempt *outer;
    jmp_buf end;
    struct attempt_part *parts; /* the last added first */
    struct lock *held[MAX_HELD];
    size_t n_held;
    volatile size_t n_bytes; /* read after longjmp() */
    unsigned n_forbidden;
};

static _Thread_local struct attempt *innermost;
static _Thread_local unsigned n_outside; /* like n_forbidden, for what is in no attempt */

static unsigned *n_forbidden(void)
{
    return innermost != NULL ? &innermost->n_forbidden : &n_outside;
}

void attempt_forbid(void)
{
    ++*n_forbidden();
}

void attempt_allow(void)
{
    assert(*n_forbidden() > 0);
    --*n_forbidden();
}

/* After success the remaining resources belong to the caller. */
static void succeed(struct attempt *attempt)
{
    assert(attempt->n_forbidden == 0);
    while (attempt->parts != NULL)
        attempt_remove(attempt->parts);
    innermost = attempt->outer;
}

size_t attempt_lacking(void (*work)(void *context), void *context)
{
    struct attempt attempt = {.outer = innermost};
    innermost = &attempt;
    if (setjmp(attempt.end) != 0)
        return attempt.n_bytes;
    work(context);
    succeed(&attempt);
    return 0;
}

bool attempt(void (*work)(void *context), void *context, struct error *error)
{
    size_t n_bytes = attempt_lacking(work, context);
    return n_bytes == 0 || error_set(error, "out of memory (%zu bytes wanted)", n_bytes);
}

/* Releases everything before longjmp(): a part may lie in a stack frame that the jump removes. */
void attempt_fail(size_t n_bytes)
{
    struct attempt *attempt = innermost;
    if (attempt == NULL || attempt->n_forbidden > 0)
        return;
    attempt->n_bytes = n_bytes > 0 ? n_bytes : 1;
    for (struct attempt_part *part; (part = attempt->parts) != NULL;) {
        attempt_remove(part);
        part->give_back(part);
    }
    while (attempt->n_held > 0)
        attempt_unlock(attempt->held[attempt->n_held - 1]);
    innermost = attempt->outer;
    longjmp(attempt->end, 1);
}

void attempt_lock(struct lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    if (innermost != NULL) {
        assert(innermost->n_held < MAX_HELD);
        innermost->held[innermost->n_held++] = lock;
    }
}

void attempt_unlock(struct lock *lock)
{
    if (innermost != NULL) {
        assert(innermost->n_held > 0 && innermost->held[innermost->n_held - 1] == lock);
        innermost->n_held--;
    }
    pthread_mutex_unlock(&lock->mutex);
}

void attempt_add(struct attempt_part *part, void (*give_back)(struct attempt_part *part))
{
    if (innermost == NULL)
        return;
    *part = (struct attempt_part){innermost->parts, &innermost->parts, give_back};
    if (part->next != NULL)
        part->next->place = &part->next;
    innermost->parts = part;
}

void attempt_remove(struct attempt_part *part)
{
    if (part->place == NULL)
        return;
    *part->place = part->next;
    if (part->next != NULL)
        part->next->place = part->place;
    part->place = NULL;
}
