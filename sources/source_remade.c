#include "sources/source_kinds.h"

#include "base/arena.h"
#include "base/attempt.h"
#include "base/last_use.h"
#include "base/lock.h"

#include <stdlib.h>
#include <string.h>

struct remade {
    const char *name;
    remade_function *make;
    remade_copy_function *read_copy; /* NULL: there is none */
    void *context;
    size_t size, n_parts;
    size_t *lengths; /* of the parts */
    struct lock making;

    /* Guarded by the lock of all. */
    struct buffer *parts; /* empty: dropped */
    struct last_use use;  /* of the parts, by readers */
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

/* Those with parts. */
static struct {
    struct lock lock;
    struct last_uses uses;
    size_t n_bytes;
} all = {.lock = LOCK_INITIALIZER};

/* The caller has the lock. */
static void drop_oldest(void)
{
    struct remade *remade;
    while (all.n_bytes > REMADE_KEPT && (remade = last_uses_idle(&all.uses)) != NULL &&
           &remade->use != all.uses.newest) {
        last_uses_take_out(&all.uses, &remade->use);
        all.n_bytes -= remade->size;
        free_parts(remade->parts, remade->n_parts);
    }
}

/* Gets the parts for a reader, if they are kept. */
static bool begin_reading(struct remade *remade)
{
    lock_take(&all.lock);
    bool kept = is_kept(remade);
    if (kept) {
        remade->use.n_users++;
        last_uses_renew(&all.uses, &remade->use);
    }
    lock_drop(&all.lock);
    return kept;
}

static void end_reading(struct remade *remade)
{
    lock_take(&all.lock);
    remade->use.n_users--;
    drop_oldest();
    lock_drop(&all.lock);
}

/* Keeps parts, and takes them. */
static void keep(struct remade *remade, struct buffer *parts)
{
    lock_take(&all.lock);
    memcpy(remade->parts, parts, remade->n_parts * sizeof *parts);
    last_uses_add(&all.uses, &remade->use);
    all.n_bytes += remade->size;
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
    if (!kept && remade->read_copy != NULL && remade->read_copy(remade->context, offset, length, out))
        return true;
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
    if (is_kept(remade)) {
        last_uses_take_out(&all.uses, &remade->use);
        all.n_bytes -= remade->size;
    }
    lock_drop(&all.lock);
    free_parts(remade->parts, remade->n_parts);
    free(remade->parts);
    free(remade->lengths);
    lock_destroy(&remade->making);
    free(remade);
}

struct source *source_remade_new(const struct source *base, const char *name, struct buffer *parts, size_t n_parts,
                                 remade_function *make, remade_copy_function *read_copy, void *context)
{
    static const struct source_ops ops = {.read = read_remade, .release = release};
    struct remade *remade = memory_alloc(sizeof *remade);
    *remade =
        (struct remade){.name = name, .make = make, .read_copy = read_copy, .context = context, .n_parts = n_parts};
    remade->use.thing = remade;
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
