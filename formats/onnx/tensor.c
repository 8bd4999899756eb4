#include "formats/onnx/tensor.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/protobuf.h"
#include "formats/shape.h"
#include "quant/views/sub_byte.h"
#include "sources/paths.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields of TensorProto. */
enum {
    DIMS = 1,
    DATA_TYPE = 2,
    SEGMENT = 3,
    FLOAT_DATA = 4,
    INT32_DATA = 5,
    STRING_DATA = 6,
    INT64_DATA = 7,
    NAME = 8,
    RAW_DATA = 9,
    DOUBLE_DATA = 10,
    UINT64_DATA = 11,
    EXTERNAL_DATA = 13,
    DATA_LOCATION = 14,
};

enum { TYPE_STRING = 8, TYPE_F4 = 23, MAX_FILES = 65536, MAX_NUMBER_TEXT = 20 };

/* Data types by their number. */
static const struct data_type {
    const char *dtype;
    uint8_t field; /* of typed data */
} data_types[] = {
    {NULL},
    {"F32", FLOAT_DATA},
    {"U8", INT32_DATA},
    {"I8", INT32_DATA},
    {"U16", INT32_DATA},
    {"I16", INT32_DATA},
    {"I32", INT32_DATA},
    {"I64", INT64_DATA},
    {"U8", STRING_DATA},
    {"BOOL", INT32_DATA},
    {"F16", INT32_DATA},
    {"F64", DOUBLE_DATA},
    {"U32", UINT64_DATA},
    {"U64", UINT64_DATA},
    {"C64", FLOAT_DATA},
    {"C128", DOUBLE_DATA},
    {"BF16", INT32_DATA},
    {"F8_E4M3", INT32_DATA},
    {"F8_E4M3FNUZ", INT32_DATA},
    {"F8_E5M2", INT32_DATA},
    {"F8_E5M2FNUZ", INT32_DATA},
    {"U4", INT32_DATA},
    {"I4", INT32_DATA},
    {"F4", INT32_DATA},
    {"F8_E8M0", INT32_DATA},
    {"U2", INT32_DATA},
    {"I2", INT32_DATA},
};
enum { N_DATA_TYPES = sizeof data_types / sizeof *data_types };

/* A TensorProto without its values. */
struct proto {
    uint64_t shape[SHAPE_MAX_RANK];
    unsigned rank;
    uint64_t type;
    bool has_raw, has_typed, is_external;
    struct protobuf_field name, raw;
    uint64_t n_elements, n_bytes; /* of the elements as they are stored */
};

static bool refuse(const struct protobuf *message, const char *reason, struct error *error)
{
    return protobuf_refuse(message, message->at, reason, error);
}

/* Names. */

/* Returns a tensor of that name, without values. */
static bool begin_tensor(struct onnx_reader *reader, const struct protobuf *message, const struct protobuf_field *name,
                         struct tensor *tensor, struct error *error)
{
    size_t prefix = reader->path.length;
    uint64_t length = prefix + name->length;
    if (name->length > TENSOR_MAX_NAME || length > TENSOR_MAX_NAME || length > reader->names_left)
        return refuse(message, "the name of a tensor is too long", error);
    if (reader->tensors->n_tensors == TENSOR_SET_MAX)
        return refuse(message, "too many tensors", error);
    char *text = protobuf_text(message, name, TENSOR_MAX_NAME, error);
    if (text == NULL)
        return false;
    reader->names_left -= length;
    char *whole = arena_alloc(reader->checkpoint->arena, length + 1);
    if (prefix > 0)
        memcpy(whole, reader->path.bytes, prefix);
    memcpy(whole + prefix, text, (size_t)name->length);
    free(text);
    *tensor = (struct tensor){.name = whole, .name_length = (uint32_t)length};
    return true;
}

/* The message. */

static bool add_dimension(const struct protobuf *message, struct proto *proto, uint64_t size, struct error *error)
{
    if (proto->rank == SHAPE_MAX_RANK)
        return refuse(message, "a tensor of more than 64 dimensions", error);
    if (size > INT64_MAX)
        return refuse(message, "a tensor with a negative dimension", error);
    proto->shape[proto->rank++] = size;
    return true;
}

static bool read_dims(const struct protobuf *message, struct proto *proto, const struct protobuf_field *field,
                      struct error *error)
{
    struct protobuf packed = protobuf_inner(message, field);
    uint64_t size;
    if (field->wire == PROTOBUF_VARINT)
        return add_dimension(message, proto, field->value, error);
    while (packed.at < packed.end)
        if (!protobuf_varint(&packed, &size, error) || !add_dimension(message, proto, size, error))
            return false;
    return true;
}

static bool read_field(const struct protobuf *message, struct proto *proto, const struct protobuf_field *field,
                       struct error *error)
{
    bool is_bytes = field->wire == PROTOBUF_BYTES, is_varint = field->wire == PROTOBUF_VARINT;
    switch (field->number) {
    case DIMS:
        return (!is_bytes && !is_varint) || read_dims(message, proto, field, error);
    case DATA_TYPE:
        proto->type = is_varint ? field->value : proto->type;
        return true;
    case SEGMENT:
        return refuse(message, "a tensor in segments, which is not supported", error);
    case FLOAT_DATA:
    case INT32_DATA:
    case STRING_DATA:
    case INT64_DATA:
    case DOUBLE_DATA:
    case UINT64_DATA:
        proto->has_typed |= field->length > 0;
        return true;
    case NAME:
        proto->name = is_bytes ? *field : proto->name;
        return true;
    case RAW_DATA:
        proto->has_raw |= is_bytes;
        proto->raw = is_bytes ? *field : proto->raw;
        return true;
    case DATA_LOCATION:
        proto->is_external = is_varint ? field->value == 1 : proto->is_external;
        return true;
    default:
        return true;
    }
}

static bool read_proto(const struct protobuf *message, struct proto *proto, struct error *error)
{
    struct protobuf rest = *message;
    struct protobuf_field field;
    *proto = (struct proto){.rank = 0};
    bool more;
    while (protobuf_next(&rest, &field, &more, error) && more) {
        if (!read_field(message, proto, &field, error))
            return false;
    }
    return !more;
}

/* Sets the tensor's dtype and shape, and the sizes of its elements as they are stored. */
static bool set_shape(struct onnx_reader *reader, const struct protobuf *message, struct proto *proto,
                      struct tensor *tensor, struct error *error)
{
    char reason[64];
    snprintf(reason, sizeof reason, "a tensor of the unknown data type %" PRIu64, proto->type);
    if (proto->type == 0 || proto->type >= N_DATA_TYPES)
        return refuse(message, reason, error);
    tensor->dtype = dtype_by_name(data_types[proto->type].dtype);
    bool is_whole = shape_size(tensor->dtype, proto->shape, proto->rank, &proto->n_elements, &proto->n_bytes, NULL);
    if (!is_whole && tensor->dtype->block_elements > 1) { /* an odd number of F4: its codes */
        tensor->dtype = &u8_dtype;
        is_whole = shape_size(tensor->dtype, proto->shape, proto->rank, &proto->n_elements, &proto->n_bytes, NULL);
        proto->n_bytes = proto->n_elements / 2 + 1;
    }
    if (!is_whole)
        return refuse(message, "a tensor whose size overflows", error);
    tensor->rank = (uint8_t)proto->rank;
    tensor->shape = arena_copy(reader->checkpoint->arena, proto->shape, proto->rank * sizeof *proto->shape);
    return true;
}

/* Reports whether the codes of F4 are shown in a byte each. */
static bool is_expanded(const struct proto *proto, const struct tensor *tensor)
{
    return proto->type == TYPE_F4 && tensor->dtype == &u8_dtype;
}

static void add_expanded(struct onnx_reader *reader, struct tensor *tensor, const struct view *packed)
{
    enum { BITS = 4 };
    tensor->view =
        view_sub_byte(reader->checkpoint->arena, packed, BITS, false, &u8_dtype, tensor->rank, tensor->shape);
    tensor_set_add(reader->tensors, tensor);
}

/* Adds the tensor with elements that lie in a source, which has them all. */
static void add_stored(struct onnx_reader *reader, const struct proto *proto, struct tensor *tensor,
                       struct source *source, uint64_t offset)
{
    if (is_expanded(proto, tensor)) {
        add_expanded(reader, tensor,
                     view_of_source(reader->checkpoint->arena, source, offset, &u8_dtype, 1, &proto->n_bytes));
        return;
    }
    tensor->source = source;
    tensor->offset = offset;
    tensor->length = proto->n_bytes;
    tensor_set_add(reader->tensors, tensor);
}

/* Adds the tensor with elements in memory. */
static void add_decoded(struct onnx_reader *reader, const struct proto *proto, struct tensor *tensor, const void *bytes)
{
    struct arena *arena = reader->checkpoint->arena;
    if (is_expanded(proto, tensor)) {
        add_expanded(reader, tensor, view_literal(arena, &u8_dtype, 1, &proto->n_bytes, bytes));
        return;
    }
    tensor->view = view_literal(arena, tensor->dtype, tensor->rank, tensor->shape, bytes);
    tensor_set_add(reader->tensors, tensor);
}

/* Typed data. */

static enum protobuf_wire wire_of(uint32_t field)
{
    if (field == FLOAT_DATA)
        return PROTOBUF_FIXED32;
    return field == DOUBLE_DATA ? PROTOBUF_FIXED64 : PROTOBUF_VARINT;
}

/* Returns the bytes of an element that a number of a field holds. */
static unsigned width_of(uint32_t field, const struct dtype *dtype)
{
    if (field == FLOAT_DATA)
        return 4;
    return field == DOUBLE_DATA ? 8 : dtype->block_bytes;
}

/* Returns the numbers of a field as bytes in the arena; NULL, with an error. */
static unsigned char *decode(struct onnx_reader *reader, const struct protobuf *message, uint32_t field,
                             enum protobuf_wire encoding, unsigned width, uint64_t n_bytes, struct error *error)
{
    if (n_bytes > reader->decoded_left) {
        refuse(message, "typed data of more than 256 MiB, which is not supported", error);
        return NULL;
    }
    reader->decoded_left -= n_bytes;
    unsigned char *bytes = arena_alloc(reader->checkpoint->arena, n_bytes + 1);
    return protobuf_read_numbers(*message, field, encoding, width, bytes, error) ? bytes : NULL;
}

static bool refuse_length(const struct protobuf *message, uint64_t n_bytes, const struct proto *proto,
                          struct error *error)
{
    char reason[128];
    snprintf(reason, sizeof reason, "a tensor with %" PRIu64 " bytes of elements, but its shape needs %" PRIu64,
             n_bytes, proto->n_bytes);
    return refuse(message, reason, error);
}

static bool add_typed(struct onnx_reader *reader, const struct protobuf *message, const struct proto *proto,
                      struct tensor *tensor, struct error *error)
{
    uint32_t field = data_types[proto->type].field;
    enum protobuf_wire encoding = wire_of(field);
    unsigned width = width_of(field, tensor->dtype);
    struct protobuf_numbers numbers;
    if (!protobuf_count_numbers(*message, field, encoding, &numbers, error))
        return false;
    if (numbers.count * width != proto->n_bytes) /* at most 8 bytes for each of the file */
        return refuse_length(message, numbers.count * width, proto, error);
    if (numbers.in_place) {
        add_stored(reader, proto, tensor, reader->file, numbers.offset);
        return true;
    }
    const unsigned char *bytes = decode(reader, message, field, encoding, width, proto->n_bytes, error);
    if (bytes == NULL)
        return false;
    add_decoded(reader, proto, tensor, bytes);
    return true;
}

/* External data. */

struct external {
    char *location; /* to be freed; NULL: none */
    uint64_t offset, length;
    bool has_length;
};

static bool parse_number(const char *text, uint64_t *ret_number)
{
    uint64_t number = 0;
    if (*text == '\0' || strlen(text) > MAX_NUMBER_TEXT)
        return false;
    for (; *text >= '0' && *text <= '9'; text++)
        if (!checked_multiply(number, 10, &number) || !checked_add(number, (uint64_t)(*text - '0'), &number))
            return false;
    *ret_number = number;
    return *text == '\0';
}

/* Takes the value, which must be freed. */
static bool set_external(const struct protobuf *message, struct external *external, const char *key, char *value,
                         struct error *error)
{
    bool good = true;
    if (strcmp(key, "location") == 0) {
        free(external->location);
        external->location = value;
        return true;
    }
    if (strcmp(key, "offset") == 0)
        good = parse_number(value, &external->offset);
    else if (strcmp(key, "length") == 0)
        good = external->has_length = parse_number(value, &external->length);
    free(value);
    return good || refuse(message, "external data whose offset or length is not a number", error);
}

/* Reads a StringStringEntryProto of external_data. */
static bool read_external_entry(const struct protobuf *entry, struct external *external, struct error *error)
{
    struct protobuf rest = *entry;
    struct protobuf_field field;
    char *texts[2] = {NULL};
    bool good = true, more = true;
    while (good && more) {
        good = protobuf_next(&rest, &field, &more, error);
        if (!good || !more || field.wire != PROTOBUF_BYTES || field.number < 1 || field.number > 2)
            continue;
        free(texts[field.number - 1]);
        texts[field.number - 1] = protobuf_text(entry, &field, PATH_MAX, error);
        good = texts[field.number - 1] != NULL;
        if (good && strlen(texts[field.number - 1]) != field.length)
            good = refuse(entry, "external data with a NUL in a text", error);
    }
    if (good && texts[0] != NULL && texts[1] != NULL) {
        good = set_external(entry, external, texts[0], texts[1], error);
        texts[1] = NULL;
    }
    free(texts[0]);
    free(texts[1]);
    return good;
}

static bool read_external(struct protobuf message, struct external *external, struct error *error)
{
    struct protobuf_field field;
    bool more;
    while (protobuf_next(&message, &field, &more, error) && more) {
        struct protobuf entry = protobuf_inner(&message, &field);
        if (field.number == EXTERNAL_DATA && field.wire == PROTOBUF_BYTES &&
            !read_external_entry(&entry, external, error))
            return false;
    }
    return !more;
}

static bool may_open(const struct onnx_reader *reader, const struct protobuf *message, const char *location,
                     struct error *error)
{
    if (!inner_path(location, strlen(location)))
        return refuse(message, "external data whose location is not a file of the model's directory", error);
    if (reader->location == NULL)
        return refuse(message, "external data, which need the directory of the file", error);
    return reader->n_files < MAX_FILES || refuse(message, "external data in too many files", error);
}

/* Returns the source of another file, which is opened once. */
static struct source *open_external(struct onnx_reader *reader, const struct protobuf *message, const char *location,
                                    struct error *error)
{
    size_t number, length = strlen(location);
    if (text_index_find(&reader->file_names, location, length, &number))
        return reader->files[number];
    if (!may_open(reader, message, location, error))
        return NULL;
    struct source *source = location_source(reader->location, location, error);
    if (source == NULL) {
        error_prefix(error, "%s: external data", message->name);
        return NULL;
    }
    checkpoint_add_source(reader->checkpoint, source);
    reader->files = memory_grow(reader->files, reader->n_files, sizeof(source));
    text_index_add(&reader->file_names, arena_strdup(reader->checkpoint->arena, location), length, reader->n_files);
    reader->files[reader->n_files++] = source;
    return source;
}

static bool place_external(struct onnx_reader *reader, const struct protobuf *message, const struct proto *proto,
                           struct tensor *tensor, const struct external *external, struct error *error)
{
    struct source *source = open_external(reader, message, external->location != NULL ? external->location : "", error);
    if (source == NULL)
        return false;
    uint64_t size = source_size(source), left = external->offset <= size ? size - external->offset : 0,
             length = external->has_length ? external->length : left;
    if (external->offset > size || length > left)
        return error_set(error,
                         "%s: %s has %" PRIu64 " bytes, but a tensor lies at %" PRIu64 " to %" PRIu64 " + %" PRIu64,
                         message->name, source_name(source), size, external->offset, external->offset, length);
    if (length != proto->n_bytes)
        return refuse_length(message, length, proto, error);
    add_stored(reader, proto, tensor, source, external->offset);
    return true;
}

static bool add_external(struct onnx_reader *reader, const struct protobuf *message, const struct proto *proto,
                         struct tensor *tensor, struct error *error)
{
    struct external external = {.location = NULL};
    bool good =
        read_external(*message, &external, error) && place_external(reader, message, proto, tensor, &external, error);
    free(external.location);
    return good;
}

/* Lists a tensor of texts, whose bytes have no shape. */
static bool list_texts(struct onnx_reader *reader, struct tensor *tensor)
{
    tensor->refusal = "texts have no values";
    tensor->is_no_number = true;
    tensor_set_add(reader->tensors, tensor);
    return true;
}

bool onnx_add_tensor(struct onnx_reader *reader, const struct protobuf *message, const struct protobuf_field *name,
                     struct error *error)
{
    struct proto proto;
    struct tensor tensor;
    if (!read_proto(message, &proto, error) ||
        !begin_tensor(reader, message, name != NULL ? name : &proto.name, &tensor, error) ||
        !set_shape(reader, message, &proto, &tensor, error))
        return false;
    if (proto.type == TYPE_STRING)
        return list_texts(reader, &tensor);
    if (proto.is_external)
        return add_external(reader, message, &proto, &tensor, error);
    if (proto.has_raw && proto.has_typed)
        return refuse(message, "a tensor with both raw and typed data", error);
    if (!proto.has_raw)
        return add_typed(reader, message, &proto, &tensor, error);
    if (proto.raw.length != proto.n_bytes)
        return refuse_length(message, proto.raw.length, &proto, error);
    add_stored(reader, &proto, &tensor, reader->file, proto.raw.offset);
    return true;
}

bool onnx_list_sparse(struct onnx_reader *reader, const struct protobuf *message, const struct protobuf_field *name,
                      struct error *error)
{
    enum { VALUES = 1, SPARSE_DIMS = 3 };
    struct protobuf rest = *message;
    struct protobuf_field field;
    struct proto values = {.rank = 0}, sparse = {.rank = 0};
    struct tensor tensor;
    bool more;
    while (protobuf_next(&rest, &field, &more, error) && more) {
        struct protobuf inner = protobuf_inner(message, &field);
        if (field.number == VALUES && field.wire == PROTOBUF_BYTES && !read_proto(&inner, &values, error))
            return false;
        bool is_dims = field.number == SPARSE_DIMS && (field.wire == PROTOBUF_BYTES || field.wire == PROTOBUF_VARINT);
        if (is_dims && !read_dims(message, &sparse, &field, error))
            return false;
    }
    if (more)
        return false;
    sparse.type = values.type;
    if (!begin_tensor(reader, message, name != NULL ? name : &values.name, &tensor, error) ||
        !set_shape(reader, message, &sparse, &tensor, error))
        return false;
    tensor.refusal = "sparse tensors are not supported";
    tensor_set_add(reader->tensors, &tensor);
    return true;
}

bool onnx_add_numbers(struct onnx_reader *reader, const struct protobuf *message, uint32_t number,
                      enum protobuf_wire encoding, bool is_scalar, const struct protobuf_field *name,
                      struct error *error)
{
    struct protobuf_numbers numbers;
    struct tensor tensor;
    if (!protobuf_count_numbers(*message, number, encoding, &numbers, error) ||
        !begin_tensor(reader, message, name, &tensor, error))
        return false;
    if (is_scalar && numbers.count != 1)
        return refuse(message, "a constant that is not one number", error);
    bool is_float = encoding == PROTOBUF_FIXED32;
    struct proto proto = {.shape = {numbers.count}, .rank = is_scalar ? 0 : 1, .type = is_float ? 1 : 7};
    if (!set_shape(reader, message, &proto, &tensor, error))
        return false;
    const unsigned char *bytes = decode(reader, message, number, encoding, is_float ? 4 : 8, proto.n_bytes, error);
    if (bytes == NULL)
        return false;
    add_decoded(reader, &proto, &tensor, bytes);
    return true;
}
