#include "formats/tensorflow/bundle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Fields of BundleHeaderProto, BundleEntryProto, TensorShapeProto and its Dim. */
enum { HEADER_SHARDS = 1, HEADER_ENDIANNESS = 2 };
enum { ENTRY_DTYPE = 1, ENTRY_SHAPE = 2, ENTRY_SHARD = 3, ENTRY_OFFSET = 4, ENTRY_SIZE = 5, ENTRY_SLICES = 7 };
enum { SHAPE_DIM = 2, DIM_SIZE = 1 };

enum { TYPE_STRING = 7, TYPE_RESOURCE = 20, TYPE_VARIANT = 21 };

/* DataType, by number. Quantized types are shown as the integers that they are, elements of 2 and 4 bits in a byte
 * each, as TensorFlow keeps them. */
static const char *const dtype_names[] = {
    NULL,  "F32", "F64",     "I32",     "U8",          "I16", "I8",          "U8",   "C64", "I64", "BOOL",
    "I8",  "U8",  "I32",     "BF16",    "I16",         "U16", "U16",         "C128", "F16", "U8",  "U8",
    "U32", "U64", "F8_E5M2", "F8_E4M3", "F8_E4M3FNUZ", NULL,  "F8_E5M2FNUZ", "I8",   "U8",  "I8",  "U8",
};

static bool refuse(const struct protobuf *message, const char *reason, struct error *error)
{
    return error_set(error, "%s: %s", message->name, reason);
}

bool bundle_read_header(struct protobuf message, struct bundle_header *ret_header, struct error *error)
{
    struct protobuf_field field;
    uint64_t n_shards = 0, endianness = 0;
    bool more;
    while (protobuf_next(&message, &field, &more, error) && more) {
        if (field.wire == PROTOBUF_VARINT && field.number == HEADER_SHARDS)
            n_shards = field.value;
        if (field.wire == PROTOBUF_VARINT && field.number == HEADER_ENDIANNESS)
            endianness = field.value;
    }
    if (more)
        return false;
    if (n_shards == 0 || n_shards > BUNDLE_MAX_SHARDS || endianness > 1)
        return refuse(&message, "not the index of a TensorFlow 2 checkpoint; V1 checkpoints are not supported", error);
    *ret_header = (struct bundle_header){(uint32_t)n_shards, endianness == 1};
    return true;
}

static bool read_dimension(struct protobuf message, struct bundle_entry *entry, struct error *error)
{
    struct protobuf_field field;
    uint64_t size = 0;
    bool more;
    while (protobuf_next(&message, &field, &more, error) && more) {
        if (field.number == DIM_SIZE && field.wire == PROTOBUF_VARINT)
            size = field.value;
    }
    if (more)
        return false;
    if (entry->rank == SHAPE_MAX_RANK || size > INT64_MAX)
        return refuse(&message, "a tensor of more than 64 dimensions, or with a negative one", error);
    entry->shape[entry->rank++] = size;
    return true;
}

static bool read_shape(struct protobuf message, struct bundle_entry *entry, struct error *error)
{
    struct protobuf_field field;
    bool more;
    while (protobuf_next(&message, &field, &more, error) && more) {
        if (field.number == SHAPE_DIM && field.wire == PROTOBUF_BYTES &&
            !read_dimension(protobuf_inner(&message, &field), entry, error))
            return false;
    }
    return !more;
}

static bool set_dtype(const struct protobuf *message, uint64_t type, struct bundle_entry *entry, struct error *error)
{
    char reason[64];
    const char *name = type < sizeof dtype_names / sizeof *dtype_names ? dtype_names[type] : NULL;
    snprintf(reason, sizeof reason, "a tensor of the unknown data type %" PRIu64, type);
    if (name == NULL)
        return refuse(message, reason, error);
    entry->dtype = dtype_by_name(name);
    if (type == TYPE_STRING)
        entry->refusal = "texts have no values";
    if (type == TYPE_RESOURCE || type == TYPE_VARIANT)
        entry->refusal = "objects have no values";
    return true;
}

static void set_number(const struct protobuf_field *field, struct bundle_entry *entry, uint64_t *type)
{
    if (field->number == ENTRY_DTYPE)
        *type = field->value;
    if (field->number == ENTRY_SHARD)
        entry->shard = field->value;
    if (field->number == ENTRY_OFFSET)
        entry->offset = field->value;
    if (field->number == ENTRY_SIZE)
        entry->size = field->value;
}

bool bundle_read_entry(struct protobuf message, struct bundle_entry *ret_entry, struct error *error)
{
    struct protobuf_field field;
    uint64_t type = 0;
    *ret_entry = (struct bundle_entry){.rank = 0};
    for (bool more;;) {
        if (!protobuf_next(&message, &field, &more, error))
            return false;
        if (!more)
            return set_dtype(&message, type, ret_entry, error);
        if (field.wire == PROTOBUF_VARINT)
            set_number(&field, ret_entry, &type);
        if (field.wire != PROTOBUF_BYTES)
            continue;
        ret_entry->is_sliced |= field.number == ENTRY_SLICES;
        if (field.number == ENTRY_SHAPE && !read_shape(protobuf_inner(&message, &field), ret_entry, error))
            return false;
    }
}

/* Keys of slices: numbers in an encoding that keeps their order. */

struct key {
    const unsigned char *at, *end;
};

/* Reads a text, in which 00 ff stands for 00 and ff 00 for ff, up to 00 01. */
static bool take_text(struct key *key, char *out, size_t *ret_length)
{
    size_t length = 0;
    for (; key->end - key->at >= 2; key->at++) {
        unsigned char byte = *key->at, next = key->at[1];
        if (byte == 0 && next == 1) {
            key->at += 2;
            *ret_length = length;
            return true;
        }
        if ((byte == 0 && next != 0xff) || (byte == 0xff && next != 0))
            return false;
        key->at += byte == 0 || byte == 0xff;
        out[length++] = (char)byte;
    }
    return false;
}

/* Reads a length in bytes, and a number. */
static bool take_unsigned(struct key *key, uint64_t *ret_number)
{
    size_t length = key->at < key->end ? *key->at++ : 9;
    if (length > 8 || length > (size_t)(key->end - key->at))
        return false;
    for (*ret_number = 0; length > 0; length--)
        *ret_number = *ret_number << 8 | *key->at++;
    return true;
}

/* Reads a number of at most 8 bytes. As many ones as bytes lead a number >= 0, as many zeros a negative one, of which
 * only -1 is valid here. */
static bool take_signed(struct key *key, uint64_t *ret_number, bool *ret_minus_one)
{
    if (key->at == key->end)
        return false;
    *ret_minus_one = *key->at == 0x7f;
    if (*ret_minus_one) {
        key->at++;
        return true;
    }
    unsigned length = (unsigned)__builtin_clz((unsigned)(unsigned char)~*key->at << 24 | 1u << 15);
    if (length == 0 || length > 7 || length > (size_t)(key->end - key->at))
        return false;
    *ret_number = *key->at++ & (0xffu >> (length + 1));
    for (unsigned i = 1; i < length; i++)
        *ret_number = *ret_number << 8 | *key->at++;
    return true;
}

bool bundle_read_slice_key(const char *key, size_t length, char *name, size_t *ret_name_length,
                           struct bundle_slice *ret_slice)
{
    struct key rest = {(const unsigned char *)key, (const unsigned char *)key + length};
    uint64_t zero, rank;
    bool is_minus_one;
    if (!take_unsigned(&rest, &zero) || zero != 0 || !take_text(&rest, name, ret_name_length) ||
        !take_unsigned(&rest, &rank) || rank > SHAPE_MAX_RANK)
        return false;
    ret_slice->rank = (unsigned)rank;
    for (unsigned i = 0; i < rank; i++) {
        ret_slice->first[i] = ret_slice->sizes[i] = 0;
        if (!take_signed(&rest, &ret_slice->first[i], &is_minus_one) || is_minus_one ||
            !take_signed(&rest, &ret_slice->sizes[i], &is_minus_one))
            return false;
        if (is_minus_one)
            ret_slice->sizes[i] = BUNDLE_WHOLE;
    }
    return rest.at == rest.end;
}
