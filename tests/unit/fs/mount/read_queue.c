/* Reads in turn: as many at once as may, the others in the order in which they came. */
#include "fs/mount/waiting_room.h"

#include "tests/unit/check.h"

#include <pthread.h>

static struct queued_read read_number(fuse_ino_t number)
{
    return (struct queued_read){.ino = number, .size = 4096 + number, .offset = (off_t)number << 33};
}

static bool enters(struct read_queue *queue, fuse_ino_t number)
{
    struct queued_read read = read_number(number);
    return read_queue_enter(queue, &read);
}

/* The number of the next read, if all of it is as it was queued; else 0. */
static fuse_ino_t next_number(struct read_queue *queue)
{
    struct queued_read read;
    if (!read_queue_next(queue, &read))
        return 0;
    struct queued_read expected = read_number(read.ino);
    return read.req == NULL && read.size == expected.size && read.offset == expected.offset ? read.ino : 0;
}

static void in_turn(void)
{
    struct read_queue *queue = read_queue_new(2);
    CHECK(enters(queue, 1) && enters(queue, 2));
    CHECK(!enters(queue, 3) && !enters(queue, 4) && !enters(queue, 5));
    CHECK(next_number(queue) == 3 && next_number(queue) == 4);
    CHECK_NAMED(!enters(queue, 6), "who comes later waits: a thread that took a read is still reading");
    CHECK(next_number(queue) == 5 && next_number(queue) == 6);
    CHECK(next_number(queue) == 0);
    CHECK_NAMED(enters(queue, 7) && !enters(queue, 8), "a place that was given up is free, and only that");
    CHECK(next_number(queue) == 8 && next_number(queue) == 0 && next_number(queue) == 0);
    CHECK(enters(queue, 9) && enters(queue, 10) && !enters(queue, 11) && next_number(queue) == 11);
    CHECK(next_number(queue) == 0 && next_number(queue) == 0);
    read_queue_free(queue);
}

enum { N_THREADS = 8, N_READS = 4000, MOST_AT_ONCE = 3 };

static struct read_queue *shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned n_reading, most_reading;
static unsigned times_read[N_THREADS * N_READS];

static void count(unsigned change, fuse_ino_t number)
{
    pthread_mutex_lock(&lock);
    n_reading += change;
    most_reading = n_reading > most_reading ? n_reading : most_reading;
    times_read[number] += change == 1;
    pthread_mutex_unlock(&lock);
}

static void *work(void *context)
{
    fuse_ino_t first = (fuse_ino_t)(size_t)context * N_READS;
    for (fuse_ino_t i = 0; i < N_READS; i++) {
        struct queued_read read = read_number(first + i);
        if (!read_queue_enter(shared, &read))
            continue;
        do {
            count(1, read.ino);
            count(-1U, read.ino);
        } while (read_queue_next(shared, &read));
    }
    return NULL;
}

/* Every read is made once, by any thread, and none is lost. */
static void by_many_threads(void)
{
    pthread_t threads[N_THREADS];
    size_t n_once = 0;
    shared = read_queue_new(MOST_AT_ONCE);
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < N_THREADS * N_READS; i++)
        n_once += times_read[i] == 1;
    CHECK(n_once == N_THREADS * N_READS);
    CHECK(most_reading <= MOST_AT_ONCE);
    read_queue_free(shared);
}

int main(void)
{
    in_turn();
    by_many_threads();
    return check_done();
}
