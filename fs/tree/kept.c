#include "fs/tree/kept.h"

#include "fs/tree/file_time.h"
#include "fs/tree/keeper.h"
#include "fs/tree/kept_key.h"
#include "remote/store.h"

#include <stdatomic.h>
#include <stdlib.h>

struct kept {
    enum keep keep;
    struct keeping keeping;
    time_t newest;            /* input, in seconds */
    atomic_bool *is_verified; /* for each granule */
};

static time_t newest_of(const struct origin *origin, struct timespec newest)
{
    for (size_t i = 0; i < origin->n_sources; i++)
        newest = file_time_later(newest, source_mtime(origin->sources[i]));
    return newest.tv_sec;
}

struct kept *kept_new(const struct vfile *file, const struct kept_request *request)
{
    char key[sizeof STORE_COMPUTED + SHA256_HEX] = STORE_COMPUTED;
    if (request->keep == KEEP_NONE || file->size < STORE_GRANULE)
        return NULL;
    kept_key(file, request->identity, key + sizeof STORE_COMPUTED - 1);
    size_t n_granules = (size_t)((file->size + STORE_GRANULE - 1) / STORE_GRANULE);
    struct kept *kept = memory_alloc(sizeof *kept);
    *kept = (struct kept){.keep = request->keep, .newest = newest_of(&file->origin, request->newest)};
    kept->is_verified = memory_alloc(n_granules * sizeof *kept->is_verified);
    for (size_t i = 0; i < n_granules; i++)
        atomic_init(&kept->is_verified[i], false);
    kept->keeping = (struct keeping){store_open_computed(key, file->size, request->name), file->origin};
    return kept;
}

void kept_free(struct kept *kept)
{
    if (kept == NULL)
        return;
    keeper_finish(&kept->keeping);
    store_close(kept->keeping.object);
    free(kept->is_verified);
    free(kept);
}

/* Reports whether the granule of a byte is to be kept. */
static bool is_wanted(const struct vfile *file, uint64_t offset)
{
    uint64_t granule = offset / STORE_GRANULE;
    size_t length = store_granule_length(file->kept->keeping.object, granule);
    enum vfile_making least = file->kept->keep == KEEP_ALL ? MADE_BY_COMPUTING : MADE_SLOWLY;
    return vfile_making(file, granule * STORE_GRANULE, length) >= least;
}

static bool verify(struct kept *kept, uint64_t granule)
{
    if (!atomic_load(&kept->is_verified[granule]))
        atomic_store(&kept->is_verified[granule], store_verify(kept->keeping.object, granule));
    return atomic_load(&kept->is_verified[granule]);
}

/* Reads a part of a granule from the store. */
static bool take(struct kept *kept, uint64_t offset, size_t length, void *out)
{
    uint64_t granule = offset / STORE_GRANULE;
    struct store_object *object = kept->keeping.object;
    bool is_whole = length == store_granule_length(object, granule), taken;
    if (is_whole && !atomic_load(&kept->is_verified[granule]))
        taken = store_take(object, granule, out);
    else
        taken = verify(kept, granule) && store_read(object, granule, (size_t)(offset % STORE_GRANULE), length, out);
    atomic_store(&kept->is_verified[granule], taken);
    return taken;
}

/* Returns how much of a range is in its first granule. */
static size_t piece(uint64_t offset, uint64_t length)
{
    uint64_t left = STORE_GRANULE - offset % STORE_GRANULE;
    return (size_t)(length < left ? length : left);
}

bool kept_has(const struct vfile *file, uint64_t offset, uint64_t length, bool is_sure)
{
    struct kept *kept = file->kept;
    bool has = kept != NULL;
    for (size_t n; has && length > 0; offset += n, length -= n) {
        uint64_t granule = offset / STORE_GRANULE;
        n = piece(offset, length);
        has = is_wanted(file, offset) && (is_sure ? verify(kept, granule) : store_has(kept->keeping.object, granule));
    }
    return has;
}

/* Reports whether another write to an input would change its time. */
static bool is_settled(const struct kept *kept)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec - kept->newest > KEPT_AGE;
}

/* Where the bytes of a granule come from. */
enum way { TAKEN, COMPUTED_AND_KEPT, NOT_KEPT };

/* A range being read. Without an iov, all of it goes to `out`. */
struct reading {
    const struct vfile *file;
    uint64_t offset;
    unsigned char *out;
    struct iovec *iov;
    size_t n_iov;
    struct error *error;
};

static enum way way_of(const struct reading *reading, size_t at, size_t length)
{
    uint64_t offset = reading->offset + at;
    struct kept *kept = reading->file->kept;
    if (!is_wanted(reading->file, offset))
        return NOT_KEPT;
    if (take(kept, offset, length, reading->out + at))
        return TAKEN;
    return is_settled(kept) ? COMPUTED_AND_KEPT : NOT_KEPT;
}

/* Reads a run of pieces that go the same way. */
static bool read_run(struct reading *reading, enum way way, size_t from, size_t to)
{
    uint64_t offset = reading->offset + from;
    size_t length = to - from;
    unsigned char *bytes = reading->out + from;
    if (length == 0)
        return true;
    if (way == NOT_KEPT && reading->iov != NULL)
        return vfile_append_iov(reading->file, offset, length, reading->iov, &reading->n_iov, bytes, reading->error);
    if (way != TAKEN && !vfile_compute(reading->file, offset, length, bytes, reading->error))
        return false;
    if (way == COMPUTED_AND_KEPT)
        keeper_add(&reading->file->kept->keeping, offset, length, bytes);
    if (reading->iov != NULL)
        vfile_add_piece(reading->iov, &reading->n_iov, bytes, length);
    return true;
}

static bool read_pieces(struct reading *reading, size_t length)
{
    size_t from = 0;
    enum way way = TAKEN;
    for (size_t at = 0, n; at < length; at += n) {
        n = piece(reading->offset + at, length - at);
        enum way next = way_of(reading, at, n);
        if (next == way)
            continue;
        if (!read_run(reading, way, from, at))
            return false;
        way = next;
        from = at;
    }
    return read_run(reading, way, from, length);
}

bool kept_read(const struct vfile *file, uint64_t offset, size_t length, void *out, struct error *error)
{
    return read_pieces(&(struct reading){.file = file, .offset = offset, .out = out, .error = error}, length);
}

bool kept_iov(const struct vfile *file, uint64_t offset, size_t length, struct iovec *iov, size_t *ret_count,
              void *scratch, struct error *error)
{
    struct reading reading = {file, offset, scratch, iov, 0, error};
    bool read = read_pieces(&reading, length);
    *ret_count = reading.n_iov;
    return read;
}
