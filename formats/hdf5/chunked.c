#include "base/attempt.h"
#include "base/checked.h"
#include "base/lock.h"
#include "base/sort.h"
#include "formats/hdf5/dataset.h"
#include "formats/hdf5/object.h"
#include "sources/chunk_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

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

/* Filters. */

enum filter_id { DEFLATE = 1, SHUFFLE = 2, FLETCHER32 = 3, LZF = 32000 };

enum { CHECKSUM = 4 };

/* Filters that are known by name, but not undone. */
static const struct {
    uint16_t id;
    const char *name;
} others[] = {
    {4, "szip"},    {5, "nbit"},           {6, "scaleoffset"}, {305, "LZO"},         {307, "bzip2"}, {32001, "Blosc"},
    {32004, "LZ4"}, {32008, "bitshuffle"}, {32013, "ZFP"},     {32015, "Zstandard"}, {32017, "SZ"},  {32026, "Blosc2"},
};

static const char *name_of(unsigned id)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].id == id)
            return others[i].name;
    return "unknown";
}

static bool is_undone(unsigned id)
{
    return id == DEFLATE || id == SHUFFLE || id == FLETCHER32 || id == LZF;
}

/* Reading. */

static const char damaged[] = "damaged: the filters of a dataset";

/* Reads the filter at `at` of a message, and moves on. */
static bool read_filter(const struct hdf5_message *message, unsigned version, size_t *at, struct hdf5_filter *filter,
                        struct error *error)
{
    enum { FIRST_NAMED = 256, PREFIX = 8, SHORT_PREFIX = 6, VALUE = 4, NAME_ALIGNMENT = 8 };
    size_t left = message->length - *at;
    const unsigned char *from = message->body + *at;
    if (left < SHORT_PREFIX)
        return false;
    filter->id = (uint16_t)read_le(from, 2);
    bool has_name = version == 1 || filter->id >= FIRST_NAMED;
    size_t prefix = has_name ? PREFIX : SHORT_PREFIX;
    if (left < prefix)
        return false;
    uint64_t name = has_name ? read_le(from + 2, 2) : 0, n_values = read_le(from + prefix - 2, 2);
    if (version == 1)
        name = rounded_up(name, NAME_ALIGNMENT) * NAME_ALIGNMENT;
    uint64_t values = n_values * VALUE, padding = version == 1 && n_values % 2 != 0 ? VALUE : 0;
    if (left - prefix < name + values)
        return false;
    filter->element = n_values > 0 ? (uint32_t)read_le(from + prefix + name, VALUE) : 0;
    uint64_t length = prefix + name + values + padding;
    *at += length < left ? (size_t)length : left;
    return true;
}

bool hdf5_filters_read(const struct hdf5 *file, const struct hdf5_message *message, struct arena *arena,
                       struct hdf5_filters *filters, struct error *error)
{
    enum { PREFIX_1 = 8, PREFIX_2 = 2 };
    unsigned version = message->length >= PREFIX_2 ? message->body[0] : 0;
    size_t at = version == 1 ? PREFIX_1 : PREFIX_2;
    *filters = (struct hdf5_filters){.n_filters = message->length >= at ? message->body[1] : 0};
    if (version < 1 || version > 2 || message->length < at || filters->n_filters > HDF5_MAX_FILTERS)
        return hdf5_refuse(file, message->address, damaged, error);
    for (unsigned i = 0; i < filters->n_filters; i++) {
        struct hdf5_filter *filter = &filters->list[i];
        if (!read_filter(message, version, &at, filter, error))
            return hdf5_refuse(file, message->address, damaged, error);
        if (!is_undone(filter->id) && filters->refusal == NULL)
            filters->refusal = arena_printf(arena, "compressed by the filter %u (%s), which wfs does not read",
                                            filter->id, name_of(filter->id));
    }
    return true;
}

bool hdf5_filters_skip(const struct hdf5_filters *filters, uint32_t mask)
{
    for (unsigned i = 0; i < filters->n_filters; i++)
        if ((mask >> i & 1) == 0)
            return false;
    return true;
}

/* Undoing. Each function turns `length` bytes into at most `capacity` bytes and sets *ret_length; NULL: done. */

typedef const char *undo(const struct hdf5_filter *filter, const unsigned char *from, size_t length, unsigned char *to,
                         size_t capacity, size_t *ret_length);

static const char *undo_deflate(const struct hdf5_filter *filter, const unsigned char *from, size_t length,
                                unsigned char *to, size_t capacity, size_t *ret_length)
{
    uLongf n = (uLongf)capacity;
    int status = uncompress(to, &n, from, (uLong)length);
    *ret_length = (size_t)n;
    return status == Z_OK          ? NULL
           : status == Z_MEM_ERROR ? "not enough memory to inflate a chunk"
           : status == Z_BUF_ERROR ? "a chunk inflates to more than its size"
                                   : "the compressed data of a chunk are damaged";
}

/* Shuffled: the first bytes of all elements, then the second ones, and so on; bytes after the last element follow. */
static const char *undo_shuffle(const struct hdf5_filter *filter, const unsigned char *from, size_t length,
                                unsigned char *to, size_t capacity, size_t *ret_length)
{
    size_t size = filter->element > 0 ? filter->element : 1, n = length / size;
    for (size_t byte = 0; byte < size; byte++)
        for (size_t i = 0; i < n; i++)
            to[i * size + byte] = from[byte * n + i];
    memcpy(to + n * size, from + n * size, length - n * size);
    *ret_length = length;
    return NULL;
}

/* Fletcher's checksum over big-endian words of two bytes. */
static uint32_t fletcher32(const unsigned char *bytes, size_t length)
{
    enum { MODULUS = 65535, WORDS = 360 }; /* so many words cannot overflow the sums */
    uint32_t low = 0, high = 0;
    for (size_t i = 0; i < length / 2; i++) {
        low += (uint32_t)bytes[2 * i] << 8 | bytes[2 * i + 1];
        high += low;
        if (i % WORDS == WORDS - 1 || i + 1 == length / 2) {
            low = (low & MODULUS) + (low >> 16);
            high = (high & MODULUS) + (high >> 16);
        }
    }
    if (length % 2 != 0) {
        low += (uint32_t)bytes[length - 1] << 8;
        high += low;
        low = (low & MODULUS) + (low >> 16);
        high = (high & MODULUS) + (high >> 16);
    }
    low = (low & MODULUS) + (low >> 16);
    high = (high & MODULUS) + (high >> 16);
    return high << 16 | low;
}

/* Old versions of libhdf5 stored the checksum with the bytes of each half swapped. */
static const char *undo_fletcher32(const struct hdf5_filter *filter, const unsigned char *from, size_t length,
                                   unsigned char *to, size_t capacity, size_t *ret_length)
{
    if (length < CHECKSUM)
        return "a chunk is shorter than its checksum";
    *ret_length = length - CHECKSUM;
    uint32_t stored = (uint32_t)read_le(from + *ret_length, CHECKSUM), found = fletcher32(from, *ret_length);
    uint32_t swapped = (stored & 0x00ff00ff) << 8 | (stored >> 8 & 0x00ff00ff);
    if (found != stored && found != swapped)
        return "the checksum of a chunk is wrong";
    memcpy(to, from, *ret_length);
    return NULL;
}

/* LZF: runs of literal bytes, and copies of earlier output. Source: liblzf, as h5py uses it. */
static const char *undo_lzf(const struct hdf5_filter *filter, const unsigned char *from, size_t length,
                            unsigned char *to, size_t capacity, size_t *ret_length)
{
    enum { LITERALS = 32, LONG_COPY = 7 };
    size_t at = 0, n = 0;
    while (at < length) {
        unsigned control = from[at++];
        if (control < LITERALS) {
            size_t count = control + 1;
            if (count > length - at || count > capacity - n)
                return "the compressed data of a chunk are damaged";
            memcpy(to + n, from + at, count);
            at += count;
            n += count;
            continue;
        }
        size_t count = control >> 5, back = (size_t)(control & (LITERALS - 1)) << 8;
        if (count == LONG_COPY && at < length)
            count += from[at++];
        if (at == length)
            return "the compressed data of a chunk are truncated";
        back += (size_t)from[at++] + 1;
        count += 2;
        if (back > n || count > capacity - n)
            return "the compressed data of a chunk are damaged";
        for (size_t i = 0; i < count; i++, n++)
            to[n] = to[n - back];
    }
    *ret_length = n;
    return NULL;
}

static undo *undo_of(unsigned id)
{
    return id == DEFLATE ? undo_deflate : id == SHUFFLE ? undo_shuffle : id == LZF ? undo_lzf : undo_fletcher32;
}

/* Filters before the compression add a checksum each at most. */
static size_t room(const struct hdf5_filters *filters, size_t length)
{
    return length + (size_t)filters->n_filters * CHECKSUM;
}

const char *hdf5_filters_undo(const struct hdf5_filters *filters, uint32_t mask, unsigned char *stored,
                              size_t stored_length, unsigned char *out, size_t length)
{
    size_t most = room(filters, length) > stored_length ? room(filters, length) : stored_length, n = stored_length;
    unsigned char *buffers[2] = {memory_alloc(most), memory_alloc(most)}, *from = stored;
    const char *reason = NULL;
    int next = 0;
    for (unsigned i = filters->n_filters; reason == NULL && i-- > 0;) {
        if (mask >> i & 1)
            continue;
        reason = undo_of(filters->list[i].id)(&filters->list[i], from, n, buffers[next], most, &n);
        from = buffers[next];
        next = !next;
    }
    if (reason == NULL && n != length)
        reason = "a chunk does not have its size after decoding";
    if (reason == NULL)
        memcpy(out, from, length);
    free(buffers[0]);
    free(buffers[1]);
    return reason;
}
