/* Locks, and events that threads wait for.
 *
 * While a thread holds a lock, running out of memory ends the process and not its attempt (base/attempt.h): the code
 * that would release the lock no longer runs, so others would wait for ever or find state that is half changed. Large
 * work under a lock is an attempt of its own, which ends alone. attempt_lock() takes a lock that the attempt gives
 * back.
 *
 * A lock that is not LOCK_INITIALIZER is made by lock_init() and destroyed by its owner. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

struct lock {
    pthread_mutex_t mutex;
};
#define LOCK_INITIALIZER                                                                                               \
    {                                                                                                                  \
        PTHREAD_MUTEX_INITIALIZER                                                                                      \
    }

void lock_init(struct lock *lock);
void lock_destroy(struct lock *lock);
void lock_take(struct lock *lock);
void lock_drop(struct lock *lock);

struct event {
    pthread_cond_t condition;
};
#define EVENT_INITIALIZER                                                                                              \
    {                                                                                                                  \
        PTHREAD_COND_INITIALIZER                                                                                       \
    }

void event_init(struct event *event);
void event_destroy(struct event *event);
void event_wake(struct event *event); /* one thread that waits */
void event_wake_all(struct event *event);

/* Waits with the lock, which is free meanwhile. May return early: look at what was awaited again. */
void event_wait(struct event *event, struct lock *lock);

/* Like event_wait(), for an event from event_init(), until a time of the monotonic clock. Returns false from then on.
 */
bool event_wait_until(struct event *event, struct lock *lock, const struct timespec *deadline);

/* Locks that several readers hold at a time. */
struct shared_lock {
    pthread_rwlock_t rwlock;
};

void shared_lock_init(struct shared_lock *lock);
void shared_lock_destroy(struct shared_lock *lock);
void shared_lock_read(struct shared_lock *lock);
void shared_lock_write(struct shared_lock *lock);
void shared_lock_drop(struct shared_lock *lock);
