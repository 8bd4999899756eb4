#include "formats/hdf5/object.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

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
