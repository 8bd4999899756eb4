#include "fs/http/admission.h"

#include "base/arena.h"
#include "base/lock.h"
#include "base/system.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

struct deadline {
    struct deadline *next, **link; /* the pointer that points here */
    struct deadlines *deadlines;
    int socket;
    bool runs;
    time_t end; /* by the monotonic clock */
};

struct deadlines {
    struct lock lock;
    struct event ending;
    pthread_t thread;
    struct deadline *first;
    unsigned seconds;
    bool ends;
};

static time_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

/* Ends the connections that are late. The caller has the lock. */
static void end_late(struct deadlines *deadlines)
{
    time_t time = now();
    for (struct deadline *deadline = deadlines->first; deadline != NULL; deadline = deadline->next)
        if (deadline->runs && deadline->end <= time) {
            shutdown(deadline->socket, SHUT_RDWR);
            deadline->runs = false;
        }
}

static void *watch(void *context)
{
    struct deadlines *deadlines = context;
    unsigned period = (deadlines->seconds + 3) / 4;
    lock_take(&deadlines->lock);
    while (!deadlines->ends) {
        struct timespec look = {.tv_sec = now() + period};
        event_wait_until(&deadlines->ending, &deadlines->lock, &look);
        end_late(deadlines);
    }
    lock_drop(&deadlines->lock);
    return NULL;
}

static void destroy(struct deadlines *deadlines)
{
    event_destroy(&deadlines->ending);
    lock_destroy(&deadlines->lock);
    free(deadlines);
}

struct deadlines *deadlines_new(unsigned seconds, struct error *error)
{
    struct deadlines *deadlines = memory_alloc(sizeof *deadlines);
    *deadlines = (struct deadlines){.seconds = seconds};
    lock_init(&deadlines->lock);
    event_init(&deadlines->ending);
    int failure = pthread_create(&deadlines->thread, NULL, watch, deadlines);
    if (failure == 0)
        return deadlines;
    error_set_errno(error, failure, "no thread to watch connections");
    destroy(deadlines);
    return NULL;
}

void deadlines_free(struct deadlines *deadlines)
{
    if (deadlines == NULL)
        return;
    lock_take(&deadlines->lock);
    deadlines->ends = true;
    event_wake(&deadlines->ending);
    lock_drop(&deadlines->lock);
    pthread_join(deadlines->thread, NULL);
    destroy(deadlines);
}

struct deadline *deadline_add(struct deadlines *deadlines, int socket)
{
    struct deadline *deadline = memory_alloc(sizeof *deadline);
    lock_take(&deadlines->lock);
    *deadline = (struct deadline){.next = deadlines->first,
                                  .link = &deadlines->first,
                                  .deadlines = deadlines,
                                  .socket = socket,
                                  .runs = true,
                                  .end = now() + (time_t)deadlines->seconds};
    if (deadline->next != NULL)
        deadline->next->link = &deadline->next;
    deadlines->first = deadline;
    lock_drop(&deadlines->lock);
    return deadline;
}

void deadline_remove(struct deadline *deadline)
{
    struct deadlines *deadlines = deadline->deadlines;
    lock_take(&deadlines->lock);
    *deadline->link = deadline->next;
    if (deadline->next != NULL)
        deadline->next->link = deadline->link;
    lock_drop(&deadlines->lock);
    free(deadline);
}

static void set(struct deadline *deadline, bool runs)
{
    struct deadlines *deadlines = deadline->deadlines;
    lock_take(&deadlines->lock);
    deadline->runs = runs;
    deadline->end = now() + (time_t)deadlines->seconds;
    lock_drop(&deadlines->lock);
}

void deadline_stop(struct deadline *deadline)
{
    set(deadline, false);
}

void deadline_renew(struct deadline *deadline)
{
    set(deadline, true);
}
