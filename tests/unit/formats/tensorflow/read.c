/* TensorFlow checkpoints: indexes written by hand. */
#include "formats/tensorflow/table.h"
#include "tests/unit/formats/torch/archive.h"

static const struct open_options defaults;

enum { MAX_ENTRIES = 8 };

/* An entry of the table, and of how much of the last key it shares. */
struct entry {
    const char *key;
    size_t key_length, shared;
    struct buffer value;
};

static void put_varint(struct buffer *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        buffer_append_le(out, (value & 0x7f) | 0x80, 1);
    buffer_append_le(out, value, 1);
}

static void put_number(struct buffer *out, unsigned field, uint64_t value)
{
    put_varint(out, field << 3);
    put_varint(out, value);
}

static void put_bytes(struct buffer *out, unsigned field, const void *bytes, size_t length)
{
    put_varint(out, field << 3 | 2);
    put_varint(out, length);
    if (length > 0)
        buffer_append(out, bytes, length);
}

/* A shape of two dimensions, or of one where `columns` is 0. */
static void put_shape(struct buffer *out, uint64_t rows, uint64_t columns)
{
    struct buffer shape = {0}, dim = {0};
    put_number(&dim, 1, rows);
    put_bytes(&shape, 2, dim.bytes, dim.length);
    dim.length = 0;
    put_number(&dim, 1, columns);
    if (columns > 0)
        put_bytes(&shape, 2, dim.bytes, dim.length);
    put_bytes(out, 2, shape.bytes, shape.length);
    buffer_free(&shape);
    buffer_free(&dim);
}

static struct buffer value_of(unsigned type, uint64_t rows, uint64_t columns, uint64_t shard, uint64_t offset,
                              uint64_t size)
{
    struct buffer value = {0};
    put_number(&value, 1, type);
    put_shape(&value, rows, columns);
    put_number(&value, 3, shard);
    put_number(&value, 4, offset);
    put_number(&value, 5, size);
    return value;
}

static struct buffer header_of(unsigned n_shards, unsigned endianness)
{
    struct buffer value = {0};
    put_number(&value, 1, n_shards);
    put_number(&value, 2, endianness);
    return value;
}

/* Appends a block and what follows it; returns its place as a handle. */
static struct buffer put_block(struct buffer *out, struct buffer *block, unsigned compression)
{
    struct buffer handle = {0};
    put_varint(&handle, out->length);
    put_varint(&handle, block->length);
    size_t start = out->length;
    buffer_append(out, block->bytes, block->length);
    buffer_append_le(out, compression, 1);
    buffer_append_le(out, crc32c_masked(out->bytes + start, block->length + 1), 4);
    buffer_free(block);
    return handle;
}

static void put_entry(struct buffer *block, const struct entry *entry)
{
    put_varint(block, entry->shared);
    put_varint(block, entry->key_length - entry->shared);
    put_varint(block, entry->value.length);
    buffer_append(block, entry->key + entry->shared, entry->key_length - entry->shared);
    buffer_append(block, entry->value.bytes, entry->value.length);
}

static void end_block(struct buffer *block)
{
    buffer_append_le(block, 0, 4);
    buffer_append_le(block, 1, 4);
}

/* Snappy's literals alone. */
static struct buffer compressed(struct buffer *block)
{
    struct buffer out = {0};
    put_varint(&out, block->length);
    buffer_append_le(&out, 61 << 2, 1); /* a literal with a length of two bytes */
    buffer_append_le(&out, block->length - 1, 2);
    buffer_append(&out, block->bytes, block->length);
    buffer_free(block);
    return out;
}

/* Writes m.index, with every `per_block` entries in a block; frees their values. */
static void write_index(struct entry *entries, size_t n, size_t per_block, bool snappy)
{
    struct buffer out = {0}, index = {0}, block = {0}, empty = {0};
    for (size_t i = 0; i < n; i++) {
        put_entry(&block, &entries[i]);
        buffer_free(&entries[i].value);
        if ((i + 1) % per_block != 0 && i + 1 < n)
            continue;
        end_block(&block);
        if (snappy)
            block = compressed(&block);
        struct entry place = {entries[i].key, entries[i].key_length, 0, put_block(&out, &block, snappy)};
        put_entry(&index, &place);
        buffer_free(&place.value);
        block = (struct buffer){0};
    }
    end_block(&index);
    end_block(&empty);
    struct buffer meta = put_block(&out, &empty, 0), handle = put_block(&out, &index, 0);
    size_t footer = out.length;
    buffer_append(&out, meta.bytes, meta.length);
    buffer_append(&out, handle.bytes, handle.length);
    buffer_append_zeros(&out, footer + 40 - out.length);
    buffer_append(&out, "\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
    files_write("m.index", out.bytes, out.length);
    buffer_free(&meta);
    buffer_free(&handle);
    buffer_free(&out);
}

static void check_file(const char *path, const char *says)
{
    char *described = archive_describe(path, &defaults);
    CHECK_TEXT(described, says);
    free(described);
}

#define KEY(text) text, sizeof text - 1, 0

static void check_one(struct buffer value, const char *says)
{
    struct entry entries[] = {{KEY(""), header_of(1, 0)}, {KEY("w"), value}};
    write_index(entries, 2, 2, false);
    check_file("m.index", says);
}

static void check_tensors(void)
{
    files_write("m.data-00000-of-00001", "\1\2\3\4\5\6\7\x08", 8);
    check_one(value_of(4, 2, 3, 0, 1, 6), "w U8 [2, 3] 2 3 4 5 6 7");
    check_one(value_of(5, 2, 0, 0, 0, 4), "w I16 [2] 513 1027");
    check_one(value_of(7, 2, 0, 0, 0, 4), "w U8 [2] (texts have no values)");
    check_one(value_of(27, 2, 0, 0, 0, 4), "m.index: a tensor of the unknown data type 27");
    check_one(value_of(0, 2, 0, 0, 0, 4), "m.index: a tensor of the unknown data type 0");
    check_one(value_of(4, 2, 3, 0, 1, 5), "m.index: tensor 'w': its size in the index is not that of its shape");
    check_one(value_of(4, 2, 3, 0, 3, 6),
              "m.data-00000-of-00001: truncated: a tensor of 6 bytes at offset 3, but the file has 8");
    check_one(
        value_of(4, 2, 3, 0, UINT64_MAX, 6),
        "m.data-00000-of-00001: truncated: a tensor of 6 bytes at offset 18446744073709551615, but the file has 8");
    check_one(value_of(4, 2, 3, 1, 0, 6), "m.index: a tensor in data file 1, but there are 1");
    check_one(value_of(4, UINT64_MAX, 3, 0, 0, 6),
              "m.index: a tensor of more than 64 dimensions, or with a negative one");
    check_one(value_of(4, INT64_MAX, 16, 0, 0, 6), "m.index: tensor 'w': its size overflows");
}

/* Big-endian elements, two data files, blocks of one entry, shared beginnings of keys, Snappy. */
static void check_tables(void)
{
    for (int snappy = 0; snappy < 2; snappy++)
        for (size_t per_block = 1; per_block <= 3; per_block += 2) {
            struct entry entries[] = {{KEY(""), header_of(2, 1)},
                                      {KEY("layer/a"), value_of(5, 1, 0, 0, 0, 2)},
                                      {KEY("layer/b"), value_of(4, 1, 0, 1, 0, 1)}};
            entries[2].shared = per_block == 3 ? 6 : 0;
            files_write("m.data-00000-of-00002", "\1\2", 2);
            files_write("m.data-00001-of-00002", "\3", 1);
            write_index(entries, 3, per_block, snappy);
            check_file("m.index", "layer/a I16 [1] 258\nlayer/b U8 [1] 3");
        }
    struct entry shared[] = {{KEY(""), header_of(1, 0)}, {KEY("ab"), value_of(4, 1, 0, 0, 0, 1)}};
    shared[1].shared = 1;
    write_index(shared, 2, 2, false);
    check_file("m.index", "m.index: offset 0: an entry shares more of a key than there is, or its key is too long");
    struct entry unordered[] = {
        {KEY(""), header_of(1, 0)}, {KEY("b"), value_of(4, 1, 0, 0, 0, 1)}, {KEY("a"), value_of(4, 1, 0, 0, 0, 1)}};
    write_index(unordered, 3, 3, false);
    check_file("m.index", "m.index: offset 0: the keys of a block are not in order");
    struct entry v1[] = {{KEY(""), {0}}, {KEY("a"), value_of(4, 1, 0, 0, 0, 1)}};
    put_bytes(&v1[0].value, 1, "x", 1);
    write_index(v1, 2, 2, false);
    check_file("m.index", "m.index: not the index of a TensorFlow 2 checkpoint; V1 checkpoints are not supported");
}

/* A variable of [3, 2] in two slices: of rows, of columns, or with a gap. */
static void check_slices(const char *first_key, size_t first_length, const char *second_key, size_t second_length,
                         uint64_t rows, uint64_t columns, uint64_t second_rows, uint64_t second_columns,
                         const char *says)
{
    struct buffer whole = {0};
    put_number(&whole, 1, 4);
    put_shape(&whole, 3, 2);
    put_bytes(&whole, 7, "", 0);
    struct entry entries[] = {
        {KEY(""), header_of(1, 0)},
        {first_key, first_length, 0, value_of(4, rows, columns, 0, 0, rows * columns)},
        {second_key, second_length, 0, value_of(4, second_rows, second_columns, 0, 4, second_rows * second_columns)},
        {KEY("v"), whole}};
    write_index(entries, 4, 4, false);
    check_file("m.index", says);
}

#define SLICE(place) "\0v\0\1\1\2" place, sizeof "\0v\0\1\1\2" place - 1

static void check_partitions(void)
{
    check_slices(SLICE("\x80\x82\x80\x7f"), SLICE("\x82\x81\x80\x7f"), 2, 2, 1, 2, "v U8 [3, 2] 1 2 3 4 5 6");
    check_slices(SLICE("\x80\x7f\x80\x81"), SLICE("\x80\x7f\x81\x81"), 3, 1, 3, 1, "v U8 [3, 2] 1 5 2 6 3 7");
    check_slices(SLICE("\x80\x81\x80\x7f"), SLICE("\x82\x81\x80\x7f"), 1, 2, 1, 2,
                 "v U8 [3, 2] (its pieces leave a gap or overlap)");
    check_slices(SLICE("\x80\x82\x80\x7f"), SLICE("\x82\x82\x80\x7f"), 2, 2, 1, 2,
                 "v U8 [3, 2] (its slices have other shapes than their keys say)");
    check_slices(
        SLICE("\x80\x82\x80\x7f"), SLICE("\x82\x81\x80\x7f\x80"), 2, 2, 1, 2,
        "m.index: tensor '\\x00v\\x00\\x01\\x01\\x02\\x82\\x81\\x80\\x7f\\x80': the key of a slice is damaged");
}

static void check_places(void)
{
    static const char variables[] = "variables/variables.data-00000-of-00001";
    struct entry entries[] = {{KEY(""), header_of(1, 0)}, {KEY("w"), value_of(4, 2, 0, 0, 0, 2)}};
    write_index(entries, 2, 2, false);
    files_write("s/saved_model.pb", "x", 1);
    files_write(variables, "\1\2", 2);
    files_must(rename("variables", "s/variables") == 0 && rename("m.index", "s/variables/variables.index") == 0,
               "rename");
    check_file("s", "w U8 [2] 1 2");
    check_file("s/variables/variables.index", "w U8 [2] 1 2");
    files_write("s/variables/other.index", "x", 1);
    files_write("s/variables/other.data-00000-of-00001", "x", 1);
    check_file("s/variables",
               "s/variables: other.index and variables.index: several TensorFlow checkpoints; name one file");
    files_write_text("s/variables/checkpoint", "model_checkpoint_path: \"/elsewhere/variables\"\n");
    check_file("s/variables", "w U8 [2] 1 2");
}

static void check_snappy(const char *input, size_t length, const char *says)
{
    size_t n;
    unsigned char *bytes = snappy_decompress((const unsigned char *)input, length, 1000, &n);
    CHECK_NAMED(says == NULL ? bytes == NULL : bytes != NULL && strcmp((char *)bytes, says) == 0,
                says ? says : "damaged");
    free(bytes);
}
#define INPUT(text) text, sizeof text - 1

int main(void)
{
    CHECK(crc32c_masked("123456789", 9) ==
          (uint32_t)((0xe3069283u >> 15 | 0xe3069283u << 17) + 0xa282ead8u)); /* RFC 3720 */
    check_snappy(INPUT("\3\x08"
                       "abc"),
                 "abc");
    check_snappy(INPUT("\x08\x0c"
                       "abcd\1\4"),
                 "abcdabcd");
    check_snappy(INPUT("\7\0a\x16\1\0"), "aaaaaaa");
    check_snappy(INPUT("\5\xf0\4abcde"), "abcde");
    check_snappy(INPUT("\5\0a\x0f\1\0\0\0"), "aaaaa");
    check_snappy(INPUT("\4\x08"
                       "abc"),
                 NULL);
    check_snappy(INPUT("\2\x08"
                       "abc"),
                 NULL);
    check_snappy(INPUT("\5\0a\x0e\2\0"), NULL);
    check_snappy(INPUT("\5\0a\x0e\0\0"), NULL);
    check_snappy(INPUT("\xff\xff\xff\xff\x0f\0a"), NULL);
    check_snappy(INPUT("\x80\x80"), NULL);
    files_begin();
    check_tensors();
    check_tables();
    check_partitions();
    check_places();
    files_remove();
    return check_done();
}
