/* Who waits for a plan, and what ends it: against a tree and a libfuse that are stood in for here. Reads in turn: as
 * many at once as may, the others in the order in which they came. */
#include "fs/mount/waiting_room.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/* The room never looks into either. */
struct tree {
    atomic_bool is_planned[4], is_open; /* by the number of the directory */
    void (*planned)(void *context);
    void *context;
};

struct fuse_req {
    atomic_bool is_interrupted, is_answered;
    atomic_int error;
};

static struct tree tree;

bool tree_prepare(struct tree *of, node_id directory, const char *name)
{
    return of->is_planned[directory] || (name != NULL && strcmp(name, "ready") == 0);
}

bool tree_is_open(const struct tree *of, node_id directory)
{
    (void)directory;
    return of->is_open;
}

void tree_on_planned(struct tree *of, void (*planned)(void *context), void *context)
{
    of->planned = planned;
    of->context = context;
}

int fuse_req_interrupted(fuse_req_t req)
{
    return req->is_interrupted;
}

int fuse_reply_err(fuse_req_t req, int error)
{
    req->error = error;
    return 0;
}

static char answered_name[32];
static size_t answered_size;

static void answer(const struct waiting_request *request)
{
    snprintf(answered_name, sizeof answered_name, "%s", request->name != NULL ? request->name : "(all)");
    answered_size = request->size;
    request->req->is_answered = true;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Reports whether the request is answered, or fails, in the next seconds. */
static bool ends_within(struct fuse_req *req, double seconds)
{
    for (double end = now() + seconds; now() < end; usleep(1000))
        if (req->is_answered || req->error != 0)
            return true;
    return false;
}

enum { LONG = 60 };   /* seconds; what hangs fails */
#define A_WHILE (0.3) /* several looks of the room */

static void set_planned(node_id directory)
{
    tree.is_planned[directory] = true;
    tree.planned(tree.context);
}

static void lookups(void)
{
    struct fuse_req first = {0}, second = {0}, ready = {0}, interrupted = {0};
    char name[] = "name";
    tree = (struct tree){.is_open = true};
    struct waiting_room *room = waiting_room_new(&tree, answer);
    CHECK(waiting_room_add(room, &(struct waiting_request){.req = &first, .directory = 1, .name = name, .size = 7}));
    CHECK(waiting_room_add(room, &(struct waiting_request){.req = &second, .directory = 2, .name = "other"}));
    memset(name, 'x', sizeof name - 1); /* the caller's own */
    CHECK(!ends_within(&first, A_WHILE) && !second.is_answered);
    CHECK(waiting_room_add(room, &(struct waiting_request){.req = &ready, .directory = 3, .name = "ready"}));
    CHECK_NAMED(ends_within(&ready, LONG) && !first.is_answered, "one that waits holds up no other");
    set_planned(1);
    CHECK(ends_within(&first, LONG) && first.error == 0 && !second.is_answered);
    CHECK_TEXT(answered_name, "name");
    CHECK(answered_size == 7);

    CHECK(waiting_room_add(room, &(struct waiting_request){.req = &interrupted, .directory = 2, .name = "third"}));
    interrupted.is_interrupted = true;
    CHECK_NAMED(ends_within(&interrupted, LONG) && interrupted.error == EINTR && !interrupted.is_answered,
                "an interrupt is noticed without a plan that ends");
    CHECK(second.error == 0 && !second.is_answered);
    waiting_room_free(room);
    CHECK(second.error == ENOTCONN && !second.is_answered && tree.planned == NULL);
}

/* A listing of names that are known is answered after a time; one of names that are not waits as long as it takes. */
static void listings(void)
{
    struct fuse_req open = {0}, closed = {0}, lookup = {0};
    tree = (struct tree){.is_open = true};
    struct waiting_room *room = waiting_room_new(&tree, answer);
    double start = now();
    waiting_room_add(room, &(struct waiting_request){.req = &open, .directory = 1});
    waiting_room_add(room, &(struct waiting_request){.req = &lookup, .directory = 1, .name = "name"});
    CHECK(ends_within(&open, LONG) && open.is_answered);
    CHECK(now() - start > LISTING_PATIENCE / 1000. - 0.1);
    CHECK_TEXT(answered_name, "(all)");
    tree.is_open = false;
    start = now();
    waiting_room_add(room, &(struct waiting_request){.req = &closed, .directory = 2});
    CHECK(!ends_within(&closed, LISTING_PATIENCE / 1000. + 1.2));
    CHECK_NAMED(!lookup.is_answered && lookup.error == 0, "who asks for one file waits for it");
    set_planned(2);
    CHECK(ends_within(&closed, LONG) && closed.is_answered);
    waiting_room_free(room);
}

static void nobody(void)
{
    tree = (struct tree){0};
    waiting_room_free(waiting_room_new(&tree, answer));
    CHECK(tree.planned == NULL);
}

/* Reads. */

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
    nobody();
    lookups();
    listings();
    in_turn();
    by_many_threads();
    return check_done();
}
