#include "base/arena.h"
#include "base/attempt.h"
#include "base/checked.h"
#include "base/lock.h"
#include "base/sort.h"
#include "formats/bits.h"
#include "formats/orbax/zarr.h"
#include "formats/tensor_set.h"
#include "formats/tensorflow/table.h"
#include "sources/chunk_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_CHECKSUM = 4, ENTRY = 16 /* a chunk in a shard's index: offset and length */ };

/* A stored chunk may be larger than a decoded one, but not much. */
enum { LARGER_RATIO = 2, LARGER_CONSTANT = 64 * 1024 };

static const uint64_t missing = UINT64_MAX; /* offset and length of a chunk that a shard does not have */

struct array {
    uint64_t start, n_bytes; /* in the source */
    const char *name;
    struct zarr_array *zarr; /* on the heap */
};

/* The chunks in a value, once they are known. */
struct value_chunks {
    _Atomic bool known;
    uint64_t *index;       /* offset and length of each, in the value */
    struct chunk **places; /* of decoded chunks, for chunk_cache.h */
    uint64_t n_chunks;
};

struct zarr_chunks {
    struct value_store store;
    struct value_chunks *values; /* as many as the store has */
    struct array *arrays;
    size_t n_arrays;
    uint64_t size;
    const struct source *base;
    struct lock lock; /* held while indexes are read */
};

/* Collecting. */

struct zarr_chunks *zarr_chunks_new(struct value_store *store)
{
    struct zarr_chunks *chunks = memory_alloc(sizeof *chunks);
    *chunks = (struct zarr_chunks){.store = *store};
    chunks->values = memory_alloc(store->n_values * sizeof *chunks->values + 1);
    memset(chunks->values, 0, store->n_values * sizeof *chunks->values);
    lock_init(&chunks->lock);
    *store = (struct value_store){.n_values = 0};
    return chunks;
}

void zarr_chunks_free(void *context)
{
    struct zarr_chunks *chunks = context;
    for (size_t i = 0; i < chunks->store.n_values; i++) {
        struct value_chunks *value = &chunks->values[i];
        if (value->places != NULL)
            chunk_drop_all(value->places, (size_t)value->n_chunks);
        free(value->places);
        free(value->index);
    }
    for (size_t i = 0; i < chunks->n_arrays; i++)
        free(chunks->arrays[i].zarr);
    lock_destroy(&chunks->lock);
    value_store_free(&chunks->store);
    free(chunks->values);
    free(chunks->arrays);
    free(chunks);
}

bool zarr_chunks_add(struct zarr_chunks *chunks, const char *name, const struct zarr_array *zarr)
{
    uint64_t n_bytes = zarr->inner_bytes * zarr->n_inner * zarr->n_chunks, end; /* zarr_read() checked it */
    if (!checked_add(chunks->size, n_bytes, &end) || end > INT64_MAX)
        return false;
    chunks->arrays = memory_grow(chunks->arrays, chunks->n_arrays, sizeof *chunks->arrays);
    struct array *array = &chunks->arrays[chunks->n_arrays++];
    *array = (struct array){chunks->size, n_bytes, name, memory_alloc(sizeof *array->zarr)};
    *array->zarr = *zarr;
    chunks->size = end;
    return true;
}

/* Where a chunk is. */

struct place {
    const struct array *array;
    const struct stored_value *value; /* NULL: not stored */
    struct value_chunks *in_value;
    uint64_t number; /* in the value */
};

static bool fail(const struct place *place, const char *reason, struct error *error)
{
    return error_set(error, "%s: array '%.200s': %s", source_name(place->value->source), place->array->name, reason);
}

struct wanted_byte {
    const struct zarr_chunks *chunks;
    uint64_t offset;
};

static bool array_ends_before(const void *context, size_t index)
{
    const struct wanted_byte *wanted = context;
    const struct array *array = &wanted->chunks->arrays[index];
    return array->start + array->n_bytes <= wanted->offset;
}

static const struct array *array_at(const struct zarr_chunks *chunks, uint64_t offset)
{
    const struct wanted_byte wanted = {chunks, offset};
    return &chunks->arrays[search_first(chunks->n_arrays, array_ends_before, &wanted)];
}

/* Finds the chunk of a byte of an array. */
static struct place find(const struct zarr_chunks *chunks, const struct array *array, uint64_t within)
{
    const struct zarr_array *zarr = array->zarr;
    uint64_t number = within / zarr->inner_bytes;
    struct buffer key = {0};
    char chunk_key[ZARR_KEY];
    zarr_key(zarr, number / zarr->n_inner, chunk_key);
    buffer_printf(&key, "%s/%s", array->name, chunk_key);
    struct place place = {.array = array, .number = number % zarr->n_inner};
    size_t index;
    if (text_index_find(&chunks->store.keys, (const char *)key.bytes, key.length, &index)) {
        place.value = &chunks->store.values[index];
        place.in_value = &chunks->values[index];
    }
    buffer_free(&key);
    return place;
}

/* Indexes. */

/* Reads the index of a shard, of `n_bytes` bytes, into `index`. */
static bool read_index(const struct place *place, uint64_t n_bytes, uint64_t *index, struct error *error)
{
    const struct stored_value *value = place->value;
    const struct zarr_array *zarr = place->array->zarr;
    unsigned char *bytes = memory_alloc((size_t)n_bytes + 1);
    uint64_t at = value->offset + (zarr->index_first ? 0 : value->length - n_bytes);
    bool good = source_read(value->source, at, (size_t)n_bytes, bytes, error);
    if (good && zarr->index_has_checksum)
        good = read_le(bytes + n_bytes - CHUNK_CHECKSUM, CHUNK_CHECKSUM) ==
                   crc32c(bytes, (size_t)n_bytes - CHUNK_CHECKSUM) ||
               fail(place, "the checksum of a shard's index is wrong", error);
    for (uint64_t i = 0; good && i < zarr->n_inner; i++) {
        uint64_t offset = read_le(bytes + i * ENTRY, 8), length = read_le(bytes + i * ENTRY + 8, 8);
        bool is_missing = offset == missing && length == missing;
        index[2 * i] = offset;
        index[2 * i + 1] = length;
        if (!is_missing && (offset > value->length || length > value->length - offset))
            good = fail(place, "damaged: a chunk lies outside of its shard", error);
    }
    free(bytes);
    return good;
}

/* Like know(), with the lock held. */
static bool make_index(const struct place *place, struct error *error)
{
    const struct zarr_array *zarr = place->array->zarr;
    struct value_chunks *chunks = place->in_value;
    uint64_t checksum = zarr->index_has_checksum ? CHUNK_CHECKSUM : 0;
    if (zarr->sharded && (place->value->length < checksum || zarr->n_inner > (place->value->length - checksum) / ENTRY))
        return fail(place, "truncated: a shard is smaller than its index", error);
    uint64_t *index = memory_alloc((size_t)(2 * zarr->n_inner * sizeof *index));
    index[0] = 0;
    index[1] = place->value->length;
    if (zarr->sharded && !read_index(place, zarr->n_inner * ENTRY + checksum, index, error)) {
        free(index);
        return false;
    }
    chunks->places = memory_alloc((size_t)zarr->n_inner * sizeof *chunks->places);
    memset(chunks->places, 0, (size_t)zarr->n_inner * sizeof *chunks->places);
    chunks->index = index;
    chunks->n_chunks = zarr->n_inner;
    return true;
}

static bool know(struct zarr_chunks *chunks, const struct place *place, struct error *error)
{
    if (place->in_value->known)
        return true;
    attempt_lock(&chunks->lock);
    bool known = place->in_value->known || make_index(place, error);
    place->in_value->known = known;
    attempt_unlock(&chunks->lock);
    return known;
}

/* Chunks. */

/* Returns the length of what a codec of the chain gives, from `length` bytes. */
static size_t decoded_length(const struct zarr_array *zarr, unsigned codec, size_t length)
{
    if (zarr->codecs[codec] == CODEC_CRC32C)
        return length > CHUNK_CHECKSUM ? length - CHUNK_CHECKSUM : 0;
    return (size_t)zarr->inner_bytes +
           (zarr->n_codecs - 1 - codec) * CHUNK_CHECKSUM; /* checksums are what may follow */
}

/* Undoes all codecs but the last; takes the bytes and returns others, or NULL with a reason. */
static unsigned char *undo_first(const struct zarr_array *zarr, unsigned char *bytes, size_t *length,
                                 const char **ret_reason)
{
    for (unsigned i = 0; i + 1 < zarr->n_codecs && bytes != NULL; i++) {
        size_t n = decoded_length(zarr, i, *length);
        unsigned char *decoded = memory_alloc(n + 1);
        *ret_reason = codec_decode(zarr->codecs[i], bytes, *length, decoded, n);
        free(bytes);
        bytes = decoded;
        *length = n;
        if (*ret_reason != NULL) {
            free(bytes);
            bytes = NULL;
        }
    }
    return bytes;
}

/* Brings a chunk into the cache. Waits for room only after all reading: the source may itself be decoded. */
static bool load(const struct place *place, struct error *error)
{
    const struct zarr_array *zarr = place->array->zarr;
    const char *reason = NULL;
    uint64_t offset = place->in_value->index[2 * place->number];
    size_t length = (size_t)place->in_value->index[2 * place->number + 1];
    if (length > LARGER_RATIO * zarr->inner_bytes + LARGER_CONSTANT)
        return fail(place, "a compressed chunk is much larger than a plain one", error);
    unsigned char *bytes = memory_alloc(length + 1);
    if (!source_read(place->value->source, place->value->offset + offset, length, bytes, error)) {
        free(bytes);
        return false;
    }
    bytes = undo_first(zarr, bytes, &length, &reason);
    if (bytes == NULL)
        return fail(place, reason, error);
    struct chunk *chunk = chunk_reserve((size_t)zarr->inner_bytes);
    reason = codec_decode(zarr->codecs[zarr->n_codecs - 1], bytes, length, chunk->bytes, chunk->length);
    free(bytes);
    if (reason == NULL)
        chunk_publish(chunk, &place->in_value->places[place->number]);
    else
        chunk_give_up(chunk);
    return reason == NULL || fail(place, reason, error);
}

static bool copy_plain(const struct place *place, uint64_t from, size_t length, unsigned char *out, struct error *error)
{
    const uint64_t *stored = &place->in_value->index[2 * place->number];
    if (stored[1] != place->array->zarr->inner_bytes)
        return fail(place, "a chunk does not have the size of its shape", error);
    return source_read(place->value->source, place->value->offset + stored[0] + from, length, out, error);
}

/* Copies a range of a chunk. */
static bool copy(struct zarr_chunks *chunks, const struct place *place, uint64_t from, size_t length,
                 unsigned char *out, struct error *error)
{
    struct chunk *chunk;
    if (place->value != NULL && !know(chunks, place, error))
        return false;
    if (place->value == NULL || place->in_value->index[2 * place->number] == missing) {
        memset(out, 0, length);
        return place->array->zarr->zero_fill ||
               error_set(error, "%s: array '%.200s': a chunk is not stored, and its fill value is not 0",
                         source_name(chunks->base), place->array->name);
    }
    if (place->array->zarr->n_codecs == 0)
        return copy_plain(place, from, length, out, error);
    while ((chunk = chunk_pin(&place->in_value->places[place->number])) == NULL)
        if (!load(place, error))
            return false;
    memcpy(out, chunk->bytes + from, length);
    chunk_unpin(chunk);
    return true;
}

/* The source. */

static bool chunks_read(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    struct zarr_chunks *chunks = context;
    for (unsigned char *to = out; length > 0;) {
        const struct array *array = array_at(chunks, offset);
        uint64_t within = offset - array->start, from = within % array->zarr->inner_bytes;
        uint64_t left = array->zarr->inner_bytes - from;
        size_t n = left < length ? (size_t)left : length;
        struct place place = find(chunks, array, within);
        if (!copy(chunks, &place, from, n, to, error))
            return false;
        to += n;
        offset += n;
        length -= n;
    }
    return true;
}

/* Wanting and waiting: the values in the range, whole, since a shard's index may be at either end. */

static uint64_t value_end(const struct array *array, uint64_t offset)
{
    uint64_t value_bytes = array->zarr->inner_bytes * array->zarr->n_inner;
    return array->start + ((offset - array->start) / value_bytes + 1) * value_bytes;
}

static void chunks_want(void *context, uint64_t offset, uint64_t length, bool urgent)
{
    const struct zarr_chunks *chunks = context;
    for (uint64_t end = offset + length; offset < end;) {
        const struct array *array = array_at(chunks, offset);
        struct place place = find(chunks, array, offset - array->start);
        if (place.value != NULL)
            source_want(place.value->source, place.value->offset, place.value->length, urgent);
        offset = value_end(array, offset);
    }
}

static bool chunks_wait(void *context, uint64_t offset, uint64_t length, struct error *error)
{
    const struct zarr_chunks *chunks = context;
    for (uint64_t end = offset + length; offset < end;) {
        const struct array *array = array_at(chunks, offset);
        struct place place = find(chunks, array, offset - array->start);
        if (place.value != NULL && !source_wait(place.value->source, place.value->offset, place.value->length, error))
            return false;
        offset = value_end(array, offset);
    }
    return true;
}

struct source *zarr_chunks_source(struct zarr_chunks *chunks, const struct source *base)
{
    static const struct source_ops ops = {.read = chunks_read, .release = zarr_chunks_free, .want = chunks_want};
    static const struct source_ops remote_ops = {
        .read = chunks_read, .release = zarr_chunks_free, .want = chunks_want, .wait = chunks_wait};
    char name[256];
    chunks->base = base;
    snprintf(name, sizeof name, "%s (chunks)", source_name(base));
    return source_new(base, name, chunks->size, source_is_remote(base) ? &remote_ops : &ops, chunks);
}

/* Views. */

static const struct view *swapped(struct arena *arena, const struct view *view)
{
    bool is_complex = view->dtype->kind == DTYPE_COMPLEX;
    const struct bits bits = {.component_bytes = (uint8_t)(view->dtype->block_bytes / (is_complex ? 2 : 1)),
                              .swap = true};
    return bits.component_bytes > 1 ? view_bits(arena, view, bits) : view;
}

/* The source has the dimensions of the grid, of a shard's grid, and of a chunk in the order of its elements. Those of
 * one dimension of the array are put side by side, and the ends of chunks that stand over the shape are cut off. */
const struct view *zarr_view(struct arena *arena, const struct zarr_chunks *chunks, size_t index, struct source *source)
{
    const struct zarr_array *zarr = chunks->arrays[index].zarr;
    unsigned rank = zarr->rank, order[3 * ZARR_MAX_RANK];
    uint64_t shape[3 * ZARR_MAX_RANK] = {0}, covered[ZARR_MAX_RANK];
    for (unsigned i = 0; i < rank; i++) {
        shape[i] = zarr_grid(zarr, i);
        shape[rank + i] = zarr->chunk[i] / zarr->inner[i];
        shape[2 * rank + i] = zarr->inner[zarr->order[i]];
        covered[i] = shape[i] * zarr->chunk[i];
        order[3 * i] = i;
        order[3 * i + 1] = rank + i;
        order[3 * zarr->order[i] + 2] = 2 * rank + i;
    }
    const struct view *view = view_of_source(arena, source, chunks->arrays[index].start, zarr->dtype, 3 * rank, shape);
    view = view_reshape(arena, view_permute(arena, view, order), rank, covered);
    for (unsigned i = 0; i < rank; i++)
        if (covered[i] != zarr->shape[i])
            view = view_slice(arena, view, i, 0, zarr->shape[i], 1);
    return zarr->swap ? swapped(arena, view) : view;
}

/* Codecs. */

#define ZLIB_CONST /* what is read is const */
#include <zlib.h>
#include <zstd.h>

static const char *decode_zstd(const unsigned char *bytes, size_t n_bytes, unsigned char *out, size_t length)
{
    size_t n = ZSTD_decompress(out, length, bytes, n_bytes);
    if (ZSTD_isError(n))
        return "its compressed data (zstd) are damaged, or larger than a chunk";
    return n == length ? NULL : "its compressed data (zstd) are smaller than a chunk";
}

/* Both of gzip's and of zlib's headers are understood. */
static const char *decode_gzip(const unsigned char *bytes, size_t n_bytes, unsigned char *out, size_t length)
{
    enum { ANY_HEADER = 32 + 15 };
    unsigned char nothing;
    z_stream stream = {.next_in = bytes, .avail_in = (uInt)n_bytes};
    if (inflateInit2(&stream, ANY_HEADER) != Z_OK)
        return "not enough memory to inflate a chunk";
    stream.next_out = length > 0 ? out : &nothing;
    stream.avail_out = (uInt)length;
    int status = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    return status == Z_STREAM_END && stream.avail_out == 0 && stream.avail_in == 0
               ? NULL
               : "its compressed data (gzip) are damaged, or of another size than a chunk";
}

static const char *decode_crc32c(const unsigned char *bytes, size_t n_bytes, unsigned char *out, size_t length)
{
    enum { CODEC_CHECKSUM = 4 };
    if (n_bytes != length + CODEC_CHECKSUM)
        return "it does not have the size of a chunk and its checksum";
    if (read_le(bytes + length, CODEC_CHECKSUM) != crc32c(bytes, length))
        return "its checksum is wrong";
    memcpy(out, bytes, length);
    return NULL;
}

const char *codec_decode(enum codec codec, const unsigned char *bytes, size_t n_bytes, unsigned char *out,
                         size_t length)
{
    return codec == CODEC_ZSTD   ? decode_zstd(bytes, n_bytes, out, length)
           : codec == CODEC_GZIP ? decode_gzip(bytes, n_bytes, out, length)
                                 : decode_crc32c(bytes, n_bytes, out, length);
}

unsigned char *codec_decode_zstd(const unsigned char *bytes, size_t n_bytes, size_t limit, size_t *ret_length)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer in = {bytes, n_bytes, 0};
    ZSTD_outBuffer out = {NULL, 0, 0};
    size_t left = stream != NULL ? 1 : (size_t)-1;
    while (left != 0 && !ZSTD_isError(left) && out.pos <= limit) {
        size_t before = in.pos + out.pos;
        if (out.pos == out.size) {
            out.size = out.size > 0 ? 2 * out.size : 4 * n_bytes + 1;
            out.size = out.size < limit + 1 ? out.size : limit + 1;
            out.dst = memory_resize(out.dst, out.size);
        }
        left = ZSTD_decompressStream(stream, &out, &in);
        if (in.pos + out.pos == before)
            break; /* truncated, or at the limit */
    }
    ZSTD_freeDStream(stream);
    *ret_length = out.pos;
    if (left == 0 && in.pos == n_bytes && out.pos <= limit)
        return out.dst;
    free(out.dst);
    return NULL;
}
