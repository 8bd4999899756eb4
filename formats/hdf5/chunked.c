#include "formats/hdf5/dataset.h"

#include "base/attempt.h"
#include "base/checked.h"
#include "base/lock.h"
#include "base/sort.h"
#include "sources/chunk_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A stored chunk may be larger than a decoded one, but not much: filters that do not help are left out. */
enum { LARGER_RATIO = 2, LARGER_CONSTANT = 64 * 1024 };

struct chunked_dataset {
    uint64_t start, n_bytes; /* in the source */
    uint64_t chunk_bytes, element;
    unsigned char fill[16];
    const struct hdf5_filters *filters; /* on the heap, like the dataset */
    struct hdf5_dataset *dataset;
    struct hdf5_chunks stored; /* once it is `indexed` */
    struct chunk **places;     /* of decoded chunks, for chunk_cache.h: one for each stored chunk */
    _Atomic bool indexed;
    char *damage; /* why it cannot be indexed, or NULL */
};

struct hdf5_chunked {
    struct hdf5 *file; /* for the indexes, with the lock held */
    struct chunked_dataset *datasets;
    size_t n_datasets;
    uint64_t size;
    struct lock lock;
};

/* Collecting. */

struct hdf5_chunked *hdf5_chunked_new(const struct hdf5 *file)
{
    struct hdf5_chunked *chunked = memory_alloc(sizeof *chunked);
    *chunked = (struct hdf5_chunked){.file = hdf5_reopen(file)};
    lock_init(&chunked->lock);
    return chunked;
}

void hdf5_chunked_free(void *context)
{
    struct hdf5_chunked *chunked = context;
    for (size_t i = 0; i < chunked->n_datasets; i++) {
        struct chunked_dataset *dataset = &chunked->datasets[i];
        if (dataset->places != NULL)
            chunk_drop_all(dataset->places, dataset->stored.n_chunks);
        free(dataset->places);
        free(dataset->stored.chunks);
        free(dataset->dataset);
        free(dataset->damage);
    }
    lock_destroy(&chunked->lock);
    free(chunked->datasets);
    free(chunked->file);
    free(chunked);
}

/* Computes the bytes of all chunks of the grid. */
static bool count_bytes(const struct hdf5_dataset *dataset, uint64_t *ret_bytes)
{
    uint64_t grid[HDF5_MAX_RANK], bytes = dataset->chunk_bytes;
    hdf5_chunk_grid(dataset, dataset->shape, grid);
    for (unsigned i = 0; i < dataset->rank; i++)
        if (!checked_multiply(bytes, grid[i], &bytes))
            return false;
    *ret_bytes = bytes;
    return true;
}

bool hdf5_chunked_add(struct hdf5_chunked *chunked, const struct hdf5_dataset *dataset)
{
    uint64_t n_bytes, end;
    if (!count_bytes(dataset, &n_bytes) || !checked_add(chunked->size, n_bytes, &end) || end > INT64_MAX)
        return false;
    chunked->datasets = memory_grow(chunked->datasets, chunked->n_datasets, sizeof *chunked->datasets);
    struct chunked_dataset *added = &chunked->datasets[chunked->n_datasets++];
    struct hdf5_dataset *copy = memory_alloc(sizeof *copy);
    *copy = *dataset;
    *added = (struct chunked_dataset){
        .start = chunked->size,
        .n_bytes = n_bytes,
        .chunk_bytes = dataset->chunk_bytes,
        .element = dataset->type.size,
        .filters = &copy->filters,
        .dataset = copy,
    };
    memcpy(added->fill, dataset->fill, sizeof added->fill);
    chunked->size = end;
    return true;
}

size_t hdf5_chunked_count(const struct hdf5_chunked *chunked)
{
    return chunked->n_datasets;
}

const struct hdf5_dataset *hdf5_chunked_dataset(const struct hdf5_chunked *chunked, size_t index, uint64_t *ret_start)
{
    *ret_start = chunked->datasets[index].start;
    return chunked->datasets[index].dataset;
}

/* Indexes. */

/* Like index_dataset(), with the lock held. */
static bool make_index(struct hdf5_chunked *chunked, struct chunked_dataset *dataset, struct error *error)
{
    if (dataset->damage != NULL)
        return error_set(error, "%s", dataset->damage);
    hdf5_renew_budget(chunked->file);
    uint64_t unreached = source_unreached();
    if (!hdf5_chunks_read(chunked->file, dataset->dataset, &dataset->stored, error)) {
        if (source_unreached() == unreached)
            dataset->damage = memory_strdup(error->message);
        return false;
    }
    size_t n = dataset->stored.n_chunks;
    dataset->places = memory_alloc(n * sizeof *dataset->places + 1);
    memset(dataset->places, 0, n * sizeof *dataset->places);
    return true;
}

static bool index_dataset(struct hdf5_chunked *chunked, struct chunked_dataset *dataset, struct error *error)
{
    if (dataset->indexed)
        return true;
    attempt_lock(&chunked->lock);
    bool indexed = dataset->indexed || make_index(chunked, dataset, error);
    dataset->indexed = indexed;
    attempt_unlock(&chunked->lock);
    return indexed;
}

struct wanted_chunk {
    const struct hdf5_chunks *stored;
    uint64_t number;
};

static bool comes_before(const void *context, size_t index)
{
    const struct wanted_chunk *wanted = context;
    return wanted->stored->chunks[index].number < wanted->number;
}

/* Returns the place of a chunk among the stored ones of an indexed dataset; n_chunks: it is not stored. */
static size_t find_stored(const struct chunked_dataset *dataset, uint64_t number)
{
    const struct wanted_chunk wanted = {&dataset->stored, number};
    size_t found = search_first(dataset->stored.n_chunks, comes_before, &wanted);
    bool is_stored = found < dataset->stored.n_chunks && dataset->stored.chunks[found].number == number;
    return is_stored ? found : dataset->stored.n_chunks;
}

/* Chunks. */

static bool fail(const struct hdf5_chunked *chunked, const struct hdf5_chunk *stored, const char *reason,
                 struct error *error)
{
    return hdf5_refuse(chunked->file, stored->address, reason, error);
}

/* Decodes stored bytes into the cache. Waits for room in the cache only after all reading: the source may itself be
 * decoded, into the same cache. */
static bool decode(const struct hdf5_chunked *chunked, struct chunked_dataset *dataset, size_t index,
                   unsigned char *bytes, struct error *error)
{
    const struct hdf5_chunk *stored = &dataset->stored.chunks[index];
    struct chunk *chunk = chunk_reserve((size_t)dataset->chunk_bytes);
    const char *reason =
        hdf5_filters_undo(dataset->filters, stored->mask, bytes, (size_t)stored->size, chunk->bytes, chunk->length);
    if (reason == NULL) {
        chunk_publish(chunk, &dataset->places[index]);
        return true;
    }
    chunk_give_up(chunk);
    return fail(chunked, stored, reason, error);
}

static bool load_chunk(const struct hdf5_chunked *chunked, struct chunked_dataset *dataset, size_t index,
                       struct error *error)
{
    const struct hdf5_chunk *stored = &dataset->stored.chunks[index];
    if (stored->size > LARGER_RATIO * dataset->chunk_bytes + LARGER_CONSTANT)
        return fail(chunked, stored, "a compressed chunk is much larger than a plain one", error);
    unsigned char *bytes = memory_alloc((size_t)stored->size + 1);
    bool good =
        source_read(chunked->file->source, chunked->file->base + stored->address, (size_t)stored->size, bytes, error) &&
        decode(chunked, dataset, index, bytes, error);
    free(bytes);
    return good;
}

static bool copy_decoded(const struct hdf5_chunked *chunked, struct chunked_dataset *dataset, size_t index,
                         uint64_t from, size_t length, unsigned char *out, struct error *error)
{
    struct chunk *chunk;
    while ((chunk = chunk_pin(&dataset->places[index])) == NULL)
        if (!load_chunk(chunked, dataset, index, error))
            return false;
    memcpy(out, chunk->bytes + from, length);
    chunk_unpin(chunk);
    return true;
}

static void fill(const struct chunked_dataset *dataset, uint64_t from, size_t length, unsigned char *out)
{
    for (size_t i = 0; i < length; i++)
        out[i] = dataset->fill[(from + i) % dataset->element];
}

/* Copies bytes of one chunk. */
static bool copy_chunk(const struct hdf5_chunked *chunked, struct chunked_dataset *dataset, uint64_t number,
                       uint64_t from, size_t length, unsigned char *out, struct error *error)
{
    size_t index = find_stored(dataset, number);
    if (index == dataset->stored.n_chunks) {
        fill(dataset, from, length, out);
        return true;
    }
    const struct hdf5_chunk *stored = &dataset->stored.chunks[index];
    if (hdf5_filters_skip(dataset->filters, stored->mask))
        return source_read(chunked->file->source, chunked->file->base + stored->address + from, length, out, error);
    return copy_decoded(chunked, dataset, index, from, length, out, error);
}

/* The source. */

struct wanted_byte {
    const struct hdf5_chunked *chunked;
    uint64_t offset;
};

static bool dataset_ends_before(const void *context, size_t index)
{
    const struct wanted_byte *wanted = context;
    const struct chunked_dataset *dataset = &wanted->chunked->datasets[index];
    return dataset->start + dataset->n_bytes <= wanted->offset;
}

static struct chunked_dataset *dataset_at(const struct hdf5_chunked *chunked, uint64_t offset)
{
    const struct wanted_byte wanted = {chunked, offset};
    return &chunked->datasets[search_first(chunked->n_datasets, dataset_ends_before, &wanted)];
}

static bool chunked_read(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    struct hdf5_chunked *chunked = context;
    for (unsigned char *to = out; length > 0;) {
        struct chunked_dataset *dataset = dataset_at(chunked, offset);
        uint64_t within = offset - dataset->start, from = within % dataset->chunk_bytes;
        uint64_t left = dataset->chunk_bytes - from;
        size_t n = left < length ? (size_t)left : length;
        if (!index_dataset(chunked, dataset, error) ||
            !copy_chunk(chunked, dataset, within / dataset->chunk_bytes, from, n, to, error))
            return false;
        to += n;
        offset += n;
        length -= n;
    }
    return true;
}

/* Wanting and waiting: once the index is known, the stored chunks in the range. */

static void chunked_want(void *context, uint64_t offset, uint64_t length, bool urgent)
{
    const struct hdf5_chunked *chunked = context;
    for (uint64_t end = offset + length; offset < end;) {
        const struct chunked_dataset *dataset = dataset_at(chunked, offset);
        uint64_t dataset_end = dataset->start + dataset->n_bytes, stop = end < dataset_end ? end : dataset_end;
        uint64_t last = (stop - 1 - dataset->start) / dataset->chunk_bytes;
        const struct wanted_chunk wanted = {&dataset->stored, (offset - dataset->start) / dataset->chunk_bytes};
        size_t i = dataset->indexed ? search_first(dataset->stored.n_chunks, comes_before, &wanted) : 0;
        for (; dataset->indexed && i < dataset->stored.n_chunks && dataset->stored.chunks[i].number <= last; i++)
            source_want(chunked->file->source, chunked->file->base + dataset->stored.chunks[i].address,
                        dataset->stored.chunks[i].size, urgent);
        offset = stop;
    }
}

static bool chunked_wait(void *context, uint64_t offset, uint64_t length, struct error *error)
{
    struct hdf5_chunked *chunked = context;
    chunked_want(chunked, offset, length, true);
    for (uint64_t end = offset + length; offset < end;) {
        struct chunked_dataset *dataset = dataset_at(chunked, offset);
        uint64_t number = (offset - dataset->start) / dataset->chunk_bytes;
        if (!index_dataset(chunked, dataset, error))
            return false;
        size_t index = find_stored(dataset, number);
        const struct hdf5_chunk *stored = &dataset->stored.chunks[index];
        if (index < dataset->stored.n_chunks &&
            !source_wait(chunked->file->source, chunked->file->base + stored->address, stored->size, error))
            return false;
        offset = dataset->start + (number + 1) * dataset->chunk_bytes;
    }
    return true;
}

struct source *hdf5_chunked_source(struct hdf5_chunked *chunked)
{
    static const struct source_ops ops = {.read = chunked_read, .release = hdf5_chunked_free, .want = chunked_want};
    static const struct source_ops remote_ops = {
        .read = chunked_read, .release = hdf5_chunked_free, .want = chunked_want, .wait = chunked_wait};
    const struct source *file = chunked->file->source;
    char name[256];
    if (chunked->size == 0) {
        hdf5_chunked_free(chunked);
        return NULL;
    }
    snprintf(name, sizeof name, "%s (chunks)", source_name(file));
    return source_new(file, name, chunked->size, source_is_remote(file) ? &remote_ops : &ops, chunked);
}
