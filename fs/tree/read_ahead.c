#include "fs/tree/read_ahead.h"

#include "base/attempt.h"
#include "base/lock.h"
#include "fs/kept/kept.h"
#include "quant/views/dependencies.h"
#include "sources/source.h"

#include <stdlib.h>

enum {
    N_CURSORS = 32,
    SLACK_BYTES = 1 << 20, /* the kernel's own read-ahead may reorder the reads of one program */
    STEP_BYTES = 1 << 20,  /* of the file: the unit in which dependencies are named */
    MOST_STEPS = 256,      /* in one call: steps without remote bytes do not fill the window */
    RECENT = 256,          /* a cursor keeps its share for so many reads after its last one */
};

/* The position of one reader. */
struct cursor {
    uint64_t key, last_use; /* `last_use`: the number of its last read; 0: the cursor is free */
    uint64_t position;      /* the end of the bytes that have been read */
    uint64_t named_to;      /* the end of the bytes that have been named; at least `position` */
    uint64_t window;        /* bytes of sources; 0 after the first read */
    uint64_t n_step_bytes;  /* bytes of remote sources that the last step depends on */
};

struct read_ahead {
    struct lock lock;
    uint64_t n_reads;
    struct cursor cursors[N_CURSORS];
};

struct read_ahead *read_ahead_new(void)
{
    struct read_ahead *ahead = memory_alloc(sizeof *ahead);
    *ahead = (struct read_ahead){.n_reads = 0};
    lock_init(&ahead->lock);
    return ahead;
}

void read_ahead_free(struct read_ahead *ahead)
{
    lock_destroy(&ahead->lock);
    free(ahead);
}

/* Returns the cursor that a read continues: the read begins at its position, or in the bytes that it has named. */
static struct cursor *find_cursor(struct read_ahead *ahead, uint64_t key, uint64_t offset)
{
    for (size_t i = 0; i < N_CURSORS; i++) {
        struct cursor *cursor = &ahead->cursors[i];
        if (cursor->last_use != 0 && cursor->key == key && offset + SLACK_BYTES >= cursor->position &&
            offset <= cursor->named_to + SLACK_BYTES)
            return cursor;
    }
    return NULL;
}

static struct cursor *least_recent(struct read_ahead *ahead)
{
    struct cursor *least = &ahead->cursors[0];
    for (size_t i = 1; i < N_CURSORS; i++)
        if (ahead->cursors[i].last_use < least->last_use)
            least = &ahead->cursors[i];
    return least;
}

/* Returns the share of READ_AHEAD_MOST for each recent reader. */
static uint64_t largest_share(const struct read_ahead *ahead)
{
    size_t n_readers = 0;
    for (size_t i = 0; i < N_CURSORS; i++)
        n_readers += ahead->cursors[i].window > 0 && ahead->n_reads - ahead->cursors[i].last_use < RECENT;
    return READ_AHEAD_MOST / (n_readers > 0 ? n_readers : 1);
}

/* The bytes that one call names, joined so that few requests fetch them. */
struct naming {
    struct dependencies to;
    uint64_t n_taken; /* bytes of remote sources */
};

static void want_later(void *context, const struct extent *from, uint64_t n_bytes)
{
    struct naming *naming = context;
    if (!source_is_remote(from->source))
        return;
    source_want(from->source, from->offset, n_bytes, false);
    naming->n_taken += n_bytes;
}

static uint64_t count_named(const struct naming *naming)
{
    bool is_remote = naming->to.n_bytes > 0 && source_is_remote(naming->to.from.source);
    return naming->n_taken + (is_remote ? naming->to.n_bytes : 0);
}

/* Names the bytes of the next step, and records their number. */
static void name_step(struct cursor *cursor, const struct vfile *file, struct naming *naming)
{
    uint64_t left = file->size - cursor->named_to, step = left < STEP_BYTES ? left : STEP_BYTES;
    uint64_t before = count_named(naming);
    if (!kept_has(file, cursor->named_to, step, false))
        vfile_depends(file, cursor->named_to, step, &naming->to);
    cursor->n_step_bytes = count_named(naming) - before;
    cursor->named_to += step;
}

/* Once a quarter of the window has been read, names bytes until it is full again. Assumes that each step named ahead
 * needs as many bytes as the last one. */
static void fill_window(struct cursor *cursor, const struct vfile *file)
{
    uint64_t ahead = (cursor->named_to - cursor->position) / 1024 * cursor->n_step_bytes / (STEP_BYTES / 1024);
    struct naming naming = {.to = {.take = want_later, .context = &naming}};
    if (ahead > cursor->window - cursor->window / 4)
        return;
    for (int i = 0; i < MOST_STEPS && ahead < cursor->window && cursor->named_to < file->size; i++) {
        name_step(cursor, file, &naming);
        ahead += cursor->n_step_bytes;
    }
    dependencies_end(&naming.to);
}

static void follow(struct read_ahead *ahead, uint64_t key, const struct vfile *file, uint64_t offset, size_t length)
{
    struct cursor *cursor = find_cursor(ahead, key, offset);
    uint64_t end = offset + length;
    ahead->n_reads++;
    if (cursor == NULL) {
        *least_recent(ahead) =
            (struct cursor){.key = key, .last_use = ahead->n_reads, .position = end, .named_to = end};
        return;
    }
    cursor->last_use = ahead->n_reads;
    cursor->window = cursor->window > 0 ? 2 * cursor->window : READ_AHEAD_FIRST;
    uint64_t most = largest_share(ahead);
    cursor->window = cursor->window < most ? cursor->window : most;
    cursor->position = cursor->position > end ? cursor->position : end;
    cursor->named_to = cursor->named_to > end ? cursor->named_to : end;
    fill_window(cursor, file);
    if (cursor->position == file->size) /* at the end of the file, no read continues */
        *cursor = (struct cursor){0};
}

void read_ahead_follow(struct read_ahead *ahead, uint64_t key, const struct vfile *file, uint64_t offset, size_t length)
{
    if (!source_any_remote() || length == 0)
        return;
    attempt_lock(&ahead->lock);
    follow(ahead, key, file, offset, length);
    attempt_unlock(&ahead->lock);
}
