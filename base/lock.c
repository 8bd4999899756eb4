#include "base/lock.h"

#include "base/attempt.h"
#include "base/system.h"

#include <errno.h>

void lock_init(struct lock *lock)
{
    pthread_mutex_init(&lock->mutex, NULL);
}

void lock_destroy(struct lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

void lock_take(struct lock *lock)
{
    attempt_forbid();
    pthread_mutex_lock(&lock->mutex);
}

void lock_drop(struct lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
    attempt_allow();
}

void event_init(struct event *event)
{
    system_condition_init(&event->condition);
}

void event_destroy(struct event *event)
{
    pthread_cond_destroy(&event->condition);
}

void event_wake(struct event *event)
{
    pthread_cond_signal(&event->condition);
}

void event_wake_all(struct event *event)
{
    pthread_cond_broadcast(&event->condition);
}

void event_wait(struct event *event, struct lock *lock)
{
    pthread_cond_wait(&event->condition, &lock->mutex);
}

bool event_wait_until(struct event *event, struct lock *lock, const struct timespec *deadline)
{
    return system_wait_until(&event->condition, &lock->mutex, deadline) != ETIMEDOUT;
}

void shared_lock_init(struct shared_lock *lock)
{
    pthread_rwlock_init(&lock->rwlock, NULL);
}

void shared_lock_destroy(struct shared_lock *lock)
{
    pthread_rwlock_destroy(&lock->rwlock);
}

void shared_lock_read(struct shared_lock *lock)
{
    attempt_forbid();
    pthread_rwlock_rdlock(&lock->rwlock);
}

void shared_lock_write(struct shared_lock *lock)
{
    attempt_forbid();
    pthread_rwlock_wrlock(&lock->rwlock);
}

void shared_lock_drop(struct shared_lock *lock)
{
    pthread_rwlock_unlock(&lock->rwlock);
    attempt_allow();
}
