#include "fs/tree/read_ahead.h"

#include "formats/source.h"
#include "quant/dependencies.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    N_CURSORS = 32,
    SLACK_BYTES = 1 << 20, /* reads of one program may come in another order: the kernel's own read-ahead */
    STEP_BYTES = 1 << 20,  /* of the file, whose dependencies are named at once */
    MOST_STEPS = 256,      /* in one call: what needs no remote bytes counts for nothing */
    RECENT = 256,          /* reads since a cursor's last one, while it has a share of the window */
};

/* Where one reader is. */
struct cursor {
    uint64_t key, last_use; /* `last_use`: the number of a read; 0: free */
    uint64_t position;      /* the end of what has been read */
    uint64_t named_to;      /* the end of what has been named; at least `position` */
    uint64_t window;        /* bytes of sources; 0: the first read */
    uint64_t n_step_bytes;  /* of sources, that the last step depends on */
};

struct read_ahead {
    pthread_mutex_t lock;
    uint64_t n_reads;
    struct cursor cursors[N_CURSORS];
};

struct read_ahead *read_ahead_new(void)
{
    struct read_ahead *ahead = memory_alloc(sizeof *ahead);
    *ahead = (struct read_ahead){.n_reads = 0};
    pthread_mutex_init(&ahead->lock, NULL);
    return ahead;
}

void read_ahead_free(struct read_ahead *ahead)
{
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}

/* Returns the cursor that the read continues: it begins where that one is, or within what was named. */
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

/* The part of the window that each reader may have who has read lately. */
static uint64_t largest_share(const struct read_ahead *ahead)
{
    size_t n_readers = 0;
    for (size_t i = 0; i < N_CURSORS; i++)
        n_readers += ahead->cursors[i].window > 0 && ahead->n_reads - ahead->cursors[i].last_use < RECENT;
    return READ_AHEAD_MOST / (n_readers > 0 ? n_readers : 1);
}

/* The bytes that one call names: joined, so that they are fetched by few requests. */
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

/* Names the next step, and notes how many bytes of sources that was. */
static void name_step(struct cursor *cursor, const struct vfile *file, struct naming *naming)
{
    uint64_t left = file->size - cursor->named_to, step = left < STEP_BYTES ? left : STEP_BYTES;
    uint64_t before = count_named(naming);
    vfile_depends(file, cursor->named_to, step, &naming->to);
    cursor->n_step_bytes = count_named(naming) - before;
    cursor->named_to += step;
}

/* Names bytes until those of the window are named, once a quarter of it has been read. What lies ahead is taken to need
 * as much as the last step did. */
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
    if (cursor->position == file->size) /* the end: nobody continues it */
        *cursor = (struct cursor){0};
}

void read_ahead_follow(struct read_ahead *ahead, uint64_t key, const struct vfile *file, uint64_t offset, size_t length)
{
    if (!source_any_remote() || length == 0)
        return;
    pthread_mutex_lock(&ahead->lock);
    follow(ahead, key, file, offset, length);
    pthread_mutex_unlock(&ahead->lock);
}
