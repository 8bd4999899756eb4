#include "sources/archive/source_blob.h"

#include "base/arena.h"
#include "base/attempt.h"
#include "base/checked.h"
#include "base/last_use.h"

#include <inttypes.h>
#include <stdlib.h>

struct blob {
    blob_open *open;
    const void *context;
    struct digest digest;
    uint64_t size;

    /* Guarded by the lock of all. */
    struct source *file; /* NULL: closed */
    struct last_use use; /* of the file, by readers */
};

/* Those with a file. */
static struct {
    struct lock lock;
    struct last_uses uses;
    size_t count;
} all = {.lock = LOCK_INITIALIZER};

/* The functions down to open_again() are called with the lock. */

static void close_oldest(void)
{
    struct blob *blob;
    while (all.count > BLOBS_OPEN && (blob = last_uses_idle(&all.uses)) != NULL) {
        last_uses_take_out(&all.uses, &blob->use);
        all.count--;
        source_close(blob->file);
        blob->file = NULL;
    }
}

static void add_open(struct blob *blob)
{
    last_uses_add(&all.uses, &blob->use);
    all.count++;
}

static bool open_again(struct blob *blob, struct error *error)
{
    struct source *file = blob->open(blob->context, &blob->digest, error);
    if (file != NULL && source_size(file) != blob->size) {
        error_set(error, "%s: damaged: it has %" PRIu64 " bytes, and had %" PRIu64, source_name(file),
                  source_size(file), blob->size);
        source_close(file);
        file = NULL;
    }
    blob->file = file;
    return file != NULL;
}

/* Returns the file for a reader, which stays open until end_reading(). NULL on failure. */
static struct source *begin_reading(struct blob *blob, struct error *error)
{
    attempt_lock(&all.lock);
    if (blob->file != NULL)
        last_uses_renew(&all.uses, &blob->use);
    else if (open_again(blob, error))
        add_open(blob);
    blob->use.n_users += blob->file != NULL;
    close_oldest();
    struct source *file = blob->file;
    attempt_unlock(&all.lock);
    return file;
}

static void end_reading(struct blob *blob)
{
    lock_take(&all.lock);
    blob->use.n_users--;
    lock_drop(&all.lock);
}

static bool blob_read(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    struct blob *blob = context;
    const struct source *file = begin_reading(blob, error);
    if (file == NULL)
        return false;
    const bool good = source_read(file, offset, length, out, error);
    end_reading(blob);
    return good;
}

static void blob_release(void *context)
{
    struct blob *blob = context;
    lock_take(&all.lock);
    if (blob->file != NULL) {
        last_uses_take_out(&all.uses, &blob->use);
        all.count--;
    }
    lock_drop(&all.lock);
    source_close(blob->file);
    free(blob);
}

struct source *source_blob_new(struct source *file, const struct digest *digest, blob_open *open, const void *context)
{
    static const struct source_ops ops = {.read = blob_read, .release = blob_release};
    const struct source_identity identity = {
        .key = {read_le(digest->bytes, 8), read_le(digest->bytes + 8, 8)},
        .size = source_size(file),
        .mtime = source_mtime(file),
        .permissions = source_permissions(file),
        .group = source_group(file),
    };
    struct blob *blob = memory_alloc(sizeof *blob);
    *blob = (struct blob){.open = open, .context = context, .digest = *digest, .size = source_size(file), .file = file};
    blob->use.thing = blob;
    struct source *source = source_new_file(&identity, source_name(file), &ops, blob);
    attempt_lock(&all.lock);
    add_open(blob);
    close_oldest();
    attempt_unlock(&all.lock);
    return source;
}
