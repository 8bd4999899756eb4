#include "sources/source_remade.h"

#include "base/arena.h"
#include "base/attempt.h"
#include "base/lock.h"

#include <stdlib.h>
#include <string.h>

struct remade {
    const char *name;
    remade_function *make;
    void *context;
    size_t size, n_parts;
    size_t *lengths; /* of the parts */
    struct lock making;

    /* Guarded by the lock of all. */
    struct buffer *parts;         /* empty: dropped */
    unsigned n_readers;           /* of the parts */
    struct remade *newer, *older; /* among those with parts */
};

static void free_parts(struct buffer *parts, size_t n_parts)
{
    for (size_t i = 0; i < n_parts; i++)
        buffer_free(&parts[i]);
}

static bool is_kept(const struct remade *remade)
{
    return remade->parts[0].bytes != NULL;
}

/* Those with parts, by the time of their last read. */
static struct {
    struct lock lock;
    struct remade *newest, *oldest;
    size_t n_bytes;
} all = {.lock = LOCK_INITIALIZER};

/* The functions down to drop_oldest() are called with the lock. */
static void add_newest(struct remade *remade)
{
    remade->newer = NULL;
    remade->older = all.newest;
    *(all.newest != NULL ? &all.newest->newer : &all.oldest) = remade;
    all.newest = remade;
    all.n_bytes += remade->size;
}

static void take_out(struct remade *remade)
{
    *(remade->newer != NULL ? &remade->newer->older : &all.newest) = remade->older;
    *(remade->older != NULL ? &remade->older->newer : &all.oldest) = remade->newer;
    all.n_bytes -= remade->size;
}

static void drop_oldest(void)
{
    for (struct remade *remade = all.oldest; remade != all.newest && all.n_bytes > REMADE_KEPT;) {
        struct remade *newer = remade->newer;
        if (remade->n_readers == 0) {
            take_out(remade);
            free_parts(remade->parts, remade->n_parts);
        }
        remade = newer;
    }
}

/* Gets the parts for a reader, if they are kept. */
static bool begin_reading(struct remade *remade)
{
    lock_take(&all.lock);
    bool kept = is_kept(remade);
    if (kept) {
        remade->n_readers++;
        take_out(remade);
        add_newest(remade);
    }
    lock_drop(&all.lock);
    return kept;
}

static void end_reading(struct remade *remade)
{
    lock_take(&all.lock);
    remade->n_readers--;
    drop_oldest();
    lock_drop(&all.lock);
}

/* Keeps parts, and takes them. */
static void keep(struct remade *remade, struct buffer *parts)
{
    lock_take(&all.lock);
    memcpy(remade->parts, parts, remade->n_parts * sizeof *parts);
    add_newest(remade);
    drop_oldest();
    lock_drop(&all.lock);
    memset(parts, 0, remade->n_parts * sizeof *parts);
}

static bool check_lengths(const struct remade *remade, const struct buffer *parts, struct error *error)
{
    for (size_t i = 0; i < remade->n_parts; i++)
        if (parts[i].length != remade->lengths[i])
            return error_set(error, "%s would have %zu bytes, and had %zu: a source has changed; mount again",
                             remade->name, parts[i].length, remade->lengths[i]);
    return true;
}

static bool make_again(struct remade *remade, struct error *error)
{
    struct buffer *parts = memory_alloc(remade->n_parts * sizeof *parts);
    memset(parts, 0, remade->n_parts * sizeof *parts);
    bool made = remade->make(remade->context, parts, remade->n_parts, error) && check_lengths(remade, parts, error);
    if (made)
        keep(remade, parts);
    free_parts(parts, remade->n_parts);
    free(parts);
    return made;
}

/* Copies [offset, offset + length) of the parts. */
static void copy(const struct remade *remade, uint64_t offset, size_t length, unsigned char *out)
{
    for (size_t i = 0; length > 0; i++) {
        const struct buffer *part = &remade->parts[i];
        size_t n = offset < part->length ? part->length - (size_t)offset : 0;
        n = n < length ? n : length;
        if (n > 0)
            memcpy(out, part->bytes + offset, n);
        offset -= n > 0 ? offset : part->length;
        out += n;
        length -= n;
    }
}

static bool read_remade(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    struct remade *remade = context;
    bool kept = begin_reading(remade);
    while (!kept) {
        attempt_lock(&remade->making);
        kept = begin_reading(remade); /* another reader may have made them meanwhile */
        bool made = kept || make_again(remade, error);
        attempt_unlock(&remade->making);
        if (!made)
            return false;
        kept = kept || begin_reading(remade);
    }
    copy(remade, offset, length, out);
    end_reading(remade);
    return true;
}

static void release(void *context)
{
    struct remade *remade = context;
    lock_take(&all.lock);
    if (is_kept(remade))
        take_out(remade);
    lock_drop(&all.lock);
    free_parts(remade->parts, remade->n_parts);
    free(remade->parts);
    free(remade->lengths);
    lock_destroy(&remade->making);
    free(remade);
}

struct source *source_remade_new(const struct source *base, const char *name, struct buffer *parts, size_t n_parts,
                                 remade_function *make, void *context)
{
    static const struct source_ops ops = {.read = read_remade, .release = release};
    struct remade *remade = memory_alloc(sizeof *remade);
    *remade = (struct remade){.name = name, .make = make, .context = context, .n_parts = n_parts};
    remade->lengths = memory_alloc(n_parts * sizeof *remade->lengths);
    remade->parts = memory_alloc(n_parts * sizeof *remade->parts);
    for (size_t i = 0; i < n_parts; i++) {
        remade->lengths[i] = parts[i].length;
        remade->parts[i] = (struct buffer){0};
        remade->size += parts[i].length;
    }
    lock_init(&remade->making);
    struct source *source = source_new(base, name, remade->size, &ops, remade);
    if (parts[0].bytes != NULL)
        keep(remade, parts);
    return source;
}
