#include "fs/mount/remote_reads.h"

#include "base/arena.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum {
    MOST_THREADS = 64, /* the kernel's limit of reads ahead: MAX_BACKGROUND of fuse_ops.c */
    MOST_IDLE = 4,     /* threads that stay, so that a sequential reader needs no new one for each read */
};

struct remote_read {
    struct remote_read *next;
    struct queued_read read;
};

struct remote_reads {
    remote_read_answer *answer;
    pthread_mutex_t lock;
    pthread_cond_t came, thread_left;
    struct remote_read *first, **end; /* reads that no thread has begun */
    size_t n_queued, n_idle, n_threads;
    bool closing;
};

struct remote_reads *remote_reads_new(remote_read_answer *answer)
{
    struct remote_reads *reads = memory_alloc(sizeof *reads);
    *reads = (struct remote_reads){.answer = answer, .end = &reads->first};
    pthread_mutex_init(&reads->lock, NULL);
    pthread_cond_init(&reads->came, NULL);
    pthread_cond_init(&reads->thread_left, NULL);
    return reads;
}

/* Takes the next read; the caller has the lock. */
static struct remote_read *take(struct remote_reads *reads)
{
    struct remote_read *taken = reads->first;
    if (taken == NULL)
        return NULL;
    reads->first = taken->next;
    if (reads->first == NULL)
        reads->end = &reads->first;
    reads->n_queued--;
    return taken;
}

/* Waits for a read; returns NULL if the thread must end. */
static struct remote_read *await(struct remote_reads *reads)
{
    while (reads->first == NULL && !reads->closing && reads->n_idle < MOST_IDLE) {
        reads->n_idle++;
        pthread_cond_wait(&reads->came, &reads->lock);
        reads->n_idle--;
    }
    return take(reads);
}

static void *answer_reads(void *context)
{
    struct remote_reads *reads = context;
    pthread_mutex_lock(&reads->lock);
    for (struct remote_read *taken; (taken = await(reads)) != NULL; free(taken)) {
        pthread_mutex_unlock(&reads->lock);
        reads->answer(&taken->read);
        pthread_mutex_lock(&reads->lock);
    }
    reads->n_threads--;
    pthread_cond_broadcast(&reads->thread_left);
    pthread_mutex_unlock(&reads->lock);
    return NULL;
}

/* Starts a thread if none is free for one more read. Reports whether there is any thread. */
static bool has_thread(struct remote_reads *reads)
{
    pthread_t thread;
    if (reads->n_queued >= reads->n_idle && reads->n_threads < MOST_THREADS &&
        pthread_create(&thread, NULL, answer_reads, reads) == 0) {
        pthread_detach(thread);
        reads->n_threads++;
    }
    return reads->n_threads > 0;
}

bool remote_reads_add(struct remote_reads *reads, const struct queued_read *read)
{
    pthread_mutex_lock(&reads->lock);
    struct remote_read *added = malloc(sizeof *added);
    bool taken = added != NULL && has_thread(reads);
    if (!taken) {
        free(added);
    } else {
        *added = (struct remote_read){NULL, *read};
        *reads->end = added;
        reads->end = &added->next;
        reads->n_queued++;
        pthread_cond_signal(&reads->came);
    }
    pthread_mutex_unlock(&reads->lock);
    return taken;
}

void remote_reads_free(struct remote_reads *reads)
{
    pthread_mutex_lock(&reads->lock);
    reads->closing = true;
    for (struct remote_read *dropped; (dropped = take(reads)) != NULL; free(dropped))
        fuse_reply_err(dropped->read.req, EIO);
    pthread_cond_broadcast(&reads->came);
    while (reads->n_threads > 0)
        pthread_cond_wait(&reads->thread_left, &reads->lock);
    pthread_mutex_unlock(&reads->lock);
    pthread_cond_destroy(&reads->thread_left);
    pthread_cond_destroy(&reads->came);
    pthread_mutex_destroy(&reads->lock);
    free(reads);
}
