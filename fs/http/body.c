#include "fs/http/body.h"

#include "base/attempt.h"
#include "base/lock.h"
#include "base/report.h"
#include "fs/kept/kept.h"
#include "fs/tree/vfile.h"
#include "sources/source.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREAD_COST = 100 * 1000, /* nanoseconds of computation from which a block is made by another thread */
};

enum state { EMPTY, BUSY, READY, BROKEN };

struct block {
    enum state state;
    uint64_t first, length; /* in the file */
    char *bytes;            /* NULL until the block is used first */
    size_t capacity;        /* BODY_BLOCK or BODY_SMALL_BLOCK */
    enum made made;
    struct error error;
};

struct body {
    struct bodies *bodies;
    struct MHD_Connection *connection;
    struct answer answer;
    const char *target;
    bool is_large;
    struct lock lock; /* guards the following fields, and the state of blocks */
    struct block blocks[BODY_BLOCKS];
    const struct block *awaited; /* the connection is suspended until this block is ready */
    unsigned n_users;            /* the response, and each busy block */
};

/* Takes one of `most` places; false if there is none left. */
static bool take_place(atomic_uint *count, unsigned most)
{
    bool taken = atomic_fetch_add(count, 1) < most;
    if (!taken)
        atomic_fetch_sub(count, 1);
    return taken;
}

static void free_block(const struct body *body, const struct block *block)
{
    if (block->bytes != NULL && block->capacity == BODY_BLOCK)
        atomic_fetch_sub(&body->bodies->n_blocks, 1);
    free(block->bytes);
}

/* Ends the use of a body; the last user frees it. */
static void leave(void *context)
{
    struct body *body = context;
    lock_take(&body->lock);
    bool is_last = --body->n_users == 0;
    lock_drop(&body->lock);
    if (!is_last)
        return;
    for (size_t i = 0; i < BODY_BLOCKS; i++)
        free_block(body, &body->blocks[i]);
    if (body->is_large)
        atomic_fetch_sub(&body->bodies->n_large, 1);
    lock_destroy(&body->lock);
    answer_free(&body->answer);
    free(body);
}

/* Reading a block */

static enum made way_to_make(const struct vfile *file, uint64_t first, uint64_t length)
{
    if (vfile_read_cost(file, first, length) == 0)
        return COPIED;
    return kept_has(file, first, length, false) ? KEPT : COMPUTED;
}

struct reading {
    const struct body *body;
    uint64_t first, length;
    char *out;
    bool done;
    struct error *error;
};

static void read_bytes(void *context)
{
    struct reading *reading = context;
    const struct body *body = reading->body;
    const struct vfile *file = &body->answer.file;
    if (source_any_remote()) {
        vfile_want(file, reading->first, reading->length, true);
        read_ahead_follow(body->bodies->ahead, body->answer.file_key, file, reading->first, (size_t)reading->length);
        if (!vfile_wait(file, reading->first, reading->length, reading->error))
            return;
    }
    if (!vfile_read(file, reading->first, (size_t)reading->length, reading->out, reading->error))
        return;
    reading->done = !origin_changed(&file->origin) ||
                    error_set(reading->error, "a source has changed since it was opened; restart wfs serve");
}

static bool read_range(const struct body *body, uint64_t first, uint64_t length, char *out, struct error *error)
{
    struct reading reading = {body, first, length, out, false, error};
    if (atomic_load(&body->bodies->ending))
        return error_set(error, "the server ends");
    return attempt(read_bytes, &reading, error) && reading.done;
}

/* Blocks that other threads make */

static void make_block(void *context, void *item)
{
    struct body *body = context;
    struct block *block = item;
    enum made made = way_to_make(&body->answer.file, block->first, block->length);
    bool done = read_range(body, block->first, block->length, block->bytes, &block->error);
    lock_take(&body->lock);
    block->state = done ? READY : BROKEN;
    block->made = made;
    bool is_awaited = body->awaited == block;
    if (is_awaited)
        body->awaited = NULL;
    lock_drop(&body->lock);
    if (is_awaited)
        libmicrohttpd.resume_connection(body->connection);
    leave(body);
}

static struct block *find_block(struct body *body, uint64_t first)
{
    for (size_t i = 0; i < BODY_BLOCKS; i++)
        if (body->blocks[i].state != EMPTY && body->blocks[i].first == first)
            return &body->blocks[i];
    return NULL;
}

/* Gives a block its memory, a small one only if it is awaited. */
static bool allocate(const struct body *body, struct block *block, bool is_awaited)
{
    if (block->bytes != NULL)
        return true;
    bool is_large = body->is_large && take_place(&body->bodies->n_blocks, BODY_MADE);
    if (!is_large && !is_awaited)
        return false;
    block->capacity = is_large ? BODY_BLOCK : BODY_SMALL_BLOCK;
    block->bytes = malloc(block->capacity);
    if (block->bytes == NULL && is_large)
        atomic_fetch_sub(&body->bodies->n_blocks, 1);
    return block->bytes != NULL;
}

/* Returns how many bytes from `first` on are in a block of that capacity. */
static uint64_t length_of_block(const struct body *body, uint64_t first, size_t capacity)
{
    uint64_t left = body->answer.first + body->answer.length - first;
    return left < capacity ? left : capacity;
}

/* Begins to make a block, which the client awaits or which is ahead of it; NULL if there is no room, memory or thread
 * for it. The caller has the lock. */
static struct block *begin_block(struct body *body, uint64_t first, bool is_awaited)
{
    struct block *block = body->blocks;
    while (block < body->blocks + BODY_BLOCKS && block->state != EMPTY)
        block++;
    if (block == body->blocks + BODY_BLOCKS)
        return NULL;
    if (!allocate(body, block, is_awaited))
        return NULL;
    block->first = first;
    block->length = length_of_block(body, first, block->capacity);
    if (!waits_add(body->bodies->waits, make_block, body, block))
        return NULL;
    block->state = BUSY;
    body->n_users++;
    return block;
}

static bool needs_thread(const struct body *body, uint64_t first, uint64_t length)
{
    return source_any_remote() || vfile_read_cost(&body->answer.file, first, length) >= THREAD_COST;
}

/* Begins the blocks from `first` on that are not begun and fit. The caller has the lock. */
static void begin_ahead(struct body *body, uint64_t first)
{
    uint64_t end = body->answer.first + body->answer.length;
    for (size_t i = 0; i < BODY_BLOCKS && first < end; i++) {
        const struct block *block = find_block(body, first);
        if (block == NULL && needs_thread(body, first, length_of_block(body, first, BODY_BLOCK)))
            block = begin_block(body, first, false);
        if (block == NULL)
            return;
        first += block->length;
    }
}

static ssize_t fail(const struct body *body, const char *message)
{
    report("%s: %s", body->target, message);
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

/* Reads a block on the thread of the connection. */
static ssize_t read_here(const struct body *body, uint64_t first, uint64_t length, char *out)
{
    struct error error;
    enum made made = way_to_make(&body->answer.file, first, length);
    if (!read_range(body, first, length, out, &error))
        return fail(body, error.message);
    metrics_add_bytes(body->bodies->metrics, length, made);
    return (ssize_t)length;
}

/* Gives a block to the client, or suspends the connection until it is ready. The caller has the lock. */
static ssize_t take_block(struct body *body, struct block *block, char *out)
{
    uint64_t next = block->first + block->length;
    if (block->state == BROKEN)
        return fail(body, block->error.message);
    if (block->state == BUSY) {
        begin_ahead(body, next);
        libmicrohttpd.suspend_connection(body->connection);
        body->awaited = block;
        return 0;
    }
    memcpy(out, block->bytes, block->length);
    metrics_add_bytes(body->bodies->metrics, block->length, block->made);
    block->state = EMPTY;
    begin_ahead(body, next);
    return (ssize_t)block->length;
}

static ssize_t fill(void *context, uint64_t position, char *out, size_t most)
{
    struct body *body = context;
    uint64_t first = body->answer.first + position, length = length_of_block(body, first, most);
    ssize_t n_bytes;
    lock_take(&body->lock);
    struct block *block = find_block(body, first);
    if (block == NULL && needs_thread(body, first, length))
        block = begin_block(body, first, true);
    assert(block == NULL || block->length <= most);
    if (block != NULL)
        n_bytes = take_block(body, block, out);
    else if (source_any_remote())
        n_bytes = fail(body, "no thread can wait for the source, or the server ends");
    else
        n_bytes = read_here(body, first, length, out);
    lock_drop(&body->lock);
    return n_bytes;
}

struct MHD_Response *body_response(struct bodies *bodies, struct MHD_Connection *connection, struct answer *answer,
                                   const char *target)
{
    struct body *body = memory_alloc(sizeof *body);
    *body = (struct body){.bodies = bodies,
                          .connection = connection,
                          .answer = *answer,
                          .target = arena_strdup(answer->arena, target),
                          .is_large = take_place(&bodies->n_large, BODY_LARGE),
                          .n_users = 1};
    lock_init(&body->lock);
    struct MHD_Response *response = libmicrohttpd.create_response_from_callback(
        answer->length, body->is_large ? BODY_BLOCK : BODY_SMALL_BLOCK, fill, body, leave);
    if (response == NULL)
        leave(body);
    return response;
}
