#include "formats/tensorflow/table.h"

#include "base/arena.h"
#include "base/checked.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FOOTER = 48, MAGIC_AT = 40, TRAILER = 5, UNCOMPRESSED = 0, SNAPPY = 1, RESTART = 4 };

static const unsigned char magic[8] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};

struct handle {
    uint64_t offset, size;
};

/* Bytes that are read from their beginning to their end. */
struct bytes {
    const unsigned char *at, *end;
};

struct reader {
    const struct source *source;
    table_take *take;
    void *context;
    unsigned char key[TABLE_MAX_KEY];
    size_t key_length;
    bool has_key;
    struct error *error;
};

struct block {
    unsigned char *bytes;
    size_t length;
    uint64_t offset; /* in the file, for messages */
};

typedef bool use_entry(struct reader *reader, const struct block *block, struct bytes value);

static bool refuse(const struct reader *reader, uint64_t offset, const char *reason)
{
    return error_set(reader->error, "%s: offset %" PRIu64 ": %s", source_name(reader->source), offset, reason);
}

static bool take_varint(struct bytes *bytes, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && bytes->at < bytes->end; shift += 7) {
        unsigned char byte = *bytes->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool take_handle(struct bytes *bytes, struct handle *handle)
{
    return take_varint(bytes, &handle->offset) && take_varint(bytes, &handle->size);
}

/* Undoes the compression. */
static bool decompress(const struct reader *reader, struct block *block, unsigned type)
{
    size_t length;
    if (type == UNCOMPRESSED)
        return true;
    if (type != SNAPPY)
        return refuse(reader, block->offset, "a block compressed in an unknown way");
    unsigned char *bytes = snappy_decompress(block->bytes, block->length, TABLE_MAX_BLOCK, &length);
    if (bytes == NULL)
        return refuse(reader, block->offset, "a block whose compressed data are damaged");
    free(block->bytes);
    block->bytes = bytes;
    block->length = length;
    return true;
}

/* Reads a block, whose bytes the caller frees, even on failure. */
static bool read_block(const struct reader *reader, const struct handle *handle, struct block *block)
{
    uint64_t file_size = source_size(reader->source) - FOOTER;
    *block = (struct block){.offset = handle->offset};
    if (handle->size > TABLE_MAX_BLOCK || handle->offset > file_size ||
        handle->size + TRAILER > file_size - handle->offset)
        return refuse(reader, handle->offset, "a block is outside of the file, or larger than 64 MiB");
    block->length = (size_t)handle->size;
    block->bytes = memory_alloc(block->length + TRAILER);
    if (!source_read(reader->source, handle->offset, block->length + TRAILER, block->bytes, reader->error))
        return false;
    const unsigned char *trailer = block->bytes + block->length;
    if (crc32c_masked(block->bytes, block->length + 1) != (uint32_t)read_le(trailer + 1, 4))
        return refuse(reader, handle->offset, "the checksum of a block does not match: the file is damaged");
    return decompress(reader, block, trailer[0]);
}

/* Reads the next entry: its key into the reader. */
static bool next_entry(struct reader *reader, const struct block *block, struct bytes *entries, struct bytes *ret_value)
{
    uint64_t shared, own, length;
    if (!take_varint(entries, &shared) || !take_varint(entries, &own) || !take_varint(entries, &length) ||
        own > (uint64_t)(entries->end - entries->at) || length > (uint64_t)(entries->end - entries->at) - own)
        return refuse(reader, block->offset, "an entry of a block is cut off");
    if (shared > reader->key_length || own > TABLE_MAX_KEY - shared)
        return refuse(reader, block->offset, "an entry shares more of a key than there is, or its key is too long");
    bool ascends = text_compare((const char *)entries->at, (size_t)own, (const char *)reader->key + shared,
                                reader->key_length - (size_t)shared) > 0;
    if (reader->has_key && !ascends)
        return refuse(reader, block->offset, "the keys of a block are not in order");
    memcpy(reader->key + shared, entries->at, (size_t)own);
    reader->key_length = (size_t)(shared + own);
    reader->has_key = true;
    *ret_value = (struct bytes){entries->at + own, entries->at + own + length};
    entries->at = ret_value->end;
    return true;
}

static bool read_entries(struct reader *reader, const struct block *block, use_entry *use)
{
    uint64_t n_restarts = block->length >= RESTART ? read_le(block->bytes + block->length - RESTART, RESTART) : 0;
    if (block->length < RESTART || n_restarts > (block->length - RESTART) / RESTART)
        return refuse(reader, block->offset, "a block is too short for its restarts");
    struct bytes entries = {block->bytes, block->bytes + block->length - RESTART * (n_restarts + 1)},
                 value = {NULL, NULL};
    while (entries.at < entries.end)
        if (!next_entry(reader, block, &entries, &value) || !use(reader, block, value))
            return false;
    return true;
}

static bool use_value(struct reader *reader, const struct block *block, struct bytes value)
{
    (void)block;
    struct source *source = source_of_text(reader->source, source_name(reader->source), (const char *)value.at,
                                           (size_t)(value.end - value.at));
    const struct table_entry entry = {(const char *)reader->key, reader->key_length, source};
    bool good = reader->take(reader->context, &entry, reader->error);
    source_close(source);
    return good;
}

/* Reads the entries of a block that an entry of the index block names. Keys of the index lie between those of blocks,
 * so the index has a reader of its own. The order of keys is checked within a block. */
static bool use_index(struct reader *reader, const struct block *index, struct bytes value)
{
    struct handle handle;
    struct block block;
    struct reader *blocks = reader->context;
    if (!take_handle(&value, &handle))
        return refuse(reader, index->offset, "the place of a block is cut off");
    blocks->key_length = 0;
    bool good = read_block(blocks, &handle, &block) && read_entries(blocks, &block, use_value);
    free(block.bytes);
    return good;
}

bool table_probe(const struct source *source)
{
    unsigned char end[sizeof magic];
    struct error unused;
    uint64_t size = source_size(source);
    return size >= FOOTER && source_read(source, size - sizeof end, sizeof end, end, &unused) &&
           memcmp(end, magic, sizeof magic) == 0;
}

static bool read_index(struct reader *index)
{
    unsigned char footer[FOOTER];
    struct bytes handles = {footer, footer + MAGIC_AT};
    struct handle unused, handle;
    struct block block;
    uint64_t size = source_size(index->source);
    if (!source_read(index->source, size - FOOTER, FOOTER, footer, index->error))
        return false;
    if (!take_handle(&handles, &unused) || !take_handle(&handles, &handle))
        return refuse(index, size - FOOTER, "the footer is damaged");
    bool good = read_block(index, &handle, &block) && read_entries(index, &block, use_index);
    free(block.bytes);
    return good;
}

bool table_read(const struct source *source, table_take *take, void *context, struct error *error)
{
    if (!table_probe(source))
        return error_set(error,
                         "%s: truncated or damaged: it does not end as the index of a TensorFlow checkpoint does",
                         source_name(source));
    struct reader *readers = memory_alloc(2 * sizeof *readers);
    struct reader *index = &readers[0], *blocks = &readers[1];
    memset(readers, 0, 2 * sizeof *readers);
    blocks->source = index->source = source;
    blocks->error = index->error = error;
    blocks->take = take;
    blocks->context = context;
    index->context = blocks;
    bool good = read_index(index);
    free(readers);
    return good;
}

/* A copy of 64 bytes takes three. */
enum { MOST_RATIO = 22, LENGTH_BYTES = 5 };

enum { LITERAL = 0, COPY_1 = 1, COPY_2 = 2, COPY_4 = 3, LONG_LITERAL = 60 };

struct output {
    unsigned char *bytes;
    size_t length, capacity;
};

static bool read_length(const unsigned char **at, const unsigned char *end, size_t *ret_length)
{
    uint64_t length = 0;
    for (unsigned i = 0; i < LENGTH_BYTES && *at < end; i++) {
        unsigned char byte = *(*at)++;
        length |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *ret_length = (size_t)length;
            return length <= UINT32_MAX;
        }
    }
    return false;
}

/* Appends bytes of the output that were written before; the two may overlap. */
static bool copy(struct output *output, size_t distance, size_t length)
{
    if (distance == 0 || distance > output->length || length > output->capacity - output->length)
        return false;
    for (; length > 0; length--, output->length++)
        output->bytes[output->length] = output->bytes[output->length - distance];
    return true;
}

static bool literal(struct output *output, const unsigned char **at, const unsigned char *end, unsigned tag)
{
    unsigned width = tag >= LONG_LITERAL ? tag - LONG_LITERAL + 1 : 0;
    if (width > (size_t)(end - *at))
        return false;
    uint64_t length = (width > 0 ? read_le(*at, width) : tag) + 1;
    *at += width;
    if (length > (size_t)(end - *at) || length > output->capacity - output->length)
        return false;
    memcpy(output->bytes + output->length, *at, (size_t)length);
    output->length += (size_t)length;
    *at += length;
    return true;
}

static bool element(struct output *output, const unsigned char **at, const unsigned char *end)
{
    static const unsigned char widths[] = {[COPY_1] = 1, [COPY_2] = 2, [COPY_4] = 4};
    unsigned first = *(*at)++, kind = first & 3, width = widths[kind];
    if (kind == LITERAL)
        return literal(output, at, end, first >> 2);
    if (width > (size_t)(end - *at))
        return false;
    size_t distance = (size_t)read_le(*at, width), length = (first >> 2) + 1;
    *at += width;
    if (kind == COPY_1) {
        distance |= (size_t)(first >> 5) << 8;
        length = (first >> 2 & 7) + 4;
    }
    return copy(output, distance, length);
}

unsigned char *snappy_decompress(const unsigned char *input, size_t length, size_t most, size_t *ret_length)
{
    const unsigned char *at = input, *end = input + length;
    struct output output = {0};
    if (!read_length(&at, end, &output.capacity) || output.capacity > most || output.capacity / MOST_RATIO > length)
        return NULL;
    output.bytes = memory_alloc(output.capacity + 1);
    bool good = true;
    while (good && at < end)
        good = element(&output, &at, end);
    if (!good || output.length != output.capacity) {
        free(output.bytes);
        return NULL;
    }
    output.bytes[output.length] = '\0';
    *ret_length = output.length;
    return output.bytes;
}

enum { BITS = 4, STEPS = 1 << BITS };

/* The remainders of four bits, by the reflected polynomial 0x82f63b78. */
static const uint32_t steps[STEPS] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t crc32c(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint32_t crc = ~UINT32_C(0);
    for (size_t i = 0; i < length; i++) {
        crc ^= at[i];
        crc = crc >> BITS ^ steps[crc % STEPS];
        crc = crc >> BITS ^ steps[crc % STEPS];
    }
    return ~crc;
}

uint32_t crc32c_masked(const void *bytes, size_t length)
{
    const uint32_t mask = 0xa282ead8;
    uint32_t crc = crc32c(bytes, length);
    return (crc >> 15 | crc << 17) + mask;
}
