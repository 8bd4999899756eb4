#include "formats/hdf5/dataset.h"

#include "base/checked.h"
#include "formats/hdf5/file.h"
#include "formats/shape.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CHUNK = 1 << 30 };

static const char damaged_layout[] = "damaged: the layout of a dataset";

struct reader {
    struct hdf5 *file;
    const struct hdf5_object *object;
    struct arena *arena;
    struct hdf5_dataset *dataset;
};

static void leave_out(struct hdf5_dataset *dataset, const char *reason)
{
    if (dataset->refusal == NULL)
        dataset->refusal = reason;
}

/* Dataspaces. */

static bool read_dataspace(struct reader *reader, const struct hdf5_message *message, struct error *error)
{
    enum { HAS_MOST = 1, VERSION_1 = 8, VERSION_2 = 4, NO_VALUES = 2, NUMBER = 8 };
    struct hdf5_dataset *dataset = reader->dataset;
    const unsigned char *body = message->body;
    if (message->is_shared) {
        leave_out(dataset, "a shared shape is not supported");
        return true;
    }
    unsigned version = message->length >= VERSION_2 ? body[0] : 0, rank = version > 0 ? body[1] : 0;
    size_t prefix = version == 1 ? VERSION_1 : VERSION_2;
    bool has_most = version > 0 && (body[2] & HAS_MOST) != 0;
    if (version < 1 || version > 2 || rank > HDF5_MAX_RANK ||
        message->length < prefix + (size_t)rank * NUMBER * (has_most ? 2 : 1))
        return hdf5_refuse(reader->file, message->address, "damaged: the shape of a dataset", error);
    dataset->rank = rank;
    for (unsigned i = 0; i < rank; i++) {
        dataset->shape[i] = read_le(body + prefix + (size_t)i * NUMBER, NUMBER);
        dataset->most[i] = has_most ? read_le(body + prefix + (size_t)(rank + i) * NUMBER, NUMBER) : dataset->shape[i];
        if (dataset->most[i] < dataset->shape[i])
            return hdf5_refuse(reader->file, message->address, "damaged: a dataset larger than it may be", error);
    }
    dataset->is_no_number |= version == 2 && body[3] == NO_VALUES;
    if (version == 2 && body[3] == NO_VALUES)
        leave_out(dataset, "a null dataspace has no values");
    return true;
}

/* Attributes. */

/* The parts of an attribute's message. */
struct attribute {
    const char *name;
    size_t name_length;
    struct hdf5_message type, space;
    const unsigned char *data;
    size_t n_data;
};

static bool split_attribute(const struct hdf5_message *message, struct attribute *attribute)
{
    enum { PREFIX = 8, VERSION_3 = 9, ALIGNMENT = 8 };
    const unsigned char *body = message->body;
    if (message->length < VERSION_3 || message->is_shared || body[0] < 1 || body[0] > 3 ||
        (body[0] > 1 && body[1] != 0))
        return false;
    unsigned version = body[0];
    uint64_t name = read_le(body + 2, 2), type = read_le(body + 4, 2), space = read_le(body + 6, 2);
    uint64_t alignment = version == 1 ? ALIGNMENT : 1, at = version == 3 ? VERSION_3 : PREFIX;
    uint64_t type_at = at + rounded_up(name, alignment) * alignment;
    uint64_t space_at = type_at + rounded_up(type, alignment) * alignment;
    uint64_t data_at = space_at + rounded_up(space, alignment) * alignment;
    if (data_at > message->length)
        return false;
    attribute->name = (const char *)body + at;
    attribute->name_length = strnlen(attribute->name, (size_t)name);
    attribute->type = (struct hdf5_message){.body = body + type_at, .length = (size_t)type};
    attribute->space = (struct hdf5_message){.body = body + space_at, .length = (size_t)space};
    attribute->data = body + data_at;
    attribute->n_data = message->length - (size_t)data_at;
    return true;
}

/* Reports whether the attribute has one value: its dataspace is of rank 0, and not null. */
static bool is_scalar(const struct attribute *attribute)
{
    enum { LEAST = 4, NO_VALUES = 2 };
    const unsigned char *body = attribute->space.body;
    return attribute->space.length >= LEAST && body[1] == 0 && !(body[0] == 2 && body[3] == NO_VALUES);
}

char *hdf5_attribute(struct hdf5 *file, const struct hdf5_message *message, const char **ret_name, size_t limit,
                     struct arena *arena)
{
    enum { STRING = 3, VARIABLE = 9, CLASS = 15, KIND = 15, OF_STRING = 1, REFERENCE = 16, LEAST_TYPE = 8 };
    struct attribute attribute;
    struct error unused;
    size_t length;
    if (message->type != HDF5_ATTRIBUTE || !split_attribute(message, &attribute) || !is_scalar(&attribute) ||
        attribute.type.length < LEAST_TYPE)
        return NULL;
    const unsigned char *type = attribute.type.body;
    uint64_t size = read_le(type + 4, 4);
    *ret_name = arena_strndup(arena, attribute.name, attribute.name_length);
    if ((type[0] & CLASS) == STRING && size <= attribute.n_data && size <= limit)
        return memory_strndup((const char *)attribute.data, strnlen((const char *)attribute.data, (size_t)size));
    if ((type[0] & CLASS) != VARIABLE || (type[1] & KIND) != OF_STRING || attribute.n_data < REFERENCE)
        return NULL;
    return hdf5_global_heap_text(file, read_le(attribute.data + 4, 8), read_le(attribute.data + 12, 4), limit, &length,
                                 &unused);
}

/* Reports whether an opaque dataset holds bfloat16, as Keras marks it. */
static bool is_bfloat16(struct reader *reader)
{
    enum { MAX_DTYPE = 32 };
    for (size_t i = 0; i < reader->object->n_messages; i++) {
        const char *name = "";
        char *text = hdf5_attribute(reader->file, &reader->object->messages[i], &name, MAX_DTYPE, reader->arena);
        bool is_dtype = text != NULL && strcmp(name, "dtype") == 0,
             is_right = is_dtype && strcmp(text, "bfloat16") == 0;
        free(text);
        if (is_dtype)
            return is_right;
    }
    return false;
}

/* Fill values. */

/* Returns the value in a fill message, and its length; NULL: zeros. */
static const unsigned char *fill_value(const struct hdf5_message *message, uint64_t *ret_length)
{
    enum { DEFINED = 3, OLD_SIZE = 4, DEFINED_BIT = 32, SIZE_3 = 2, OLD = 8, NEW = 6 };
    const unsigned char *body = message->body;
    size_t prefix = message->type == HDF5_OLD_FILL ? 4 : message->length > 0 && body[0] == 3 ? NEW : OLD;
    bool is_defined = message->length >= prefix;
    if (is_defined && prefix == NEW)
        is_defined = (body[1] & DEFINED_BIT) != 0;
    else if (is_defined && prefix == OLD && body[0] == 2)
        is_defined = body[DEFINED] != 0;
    if (!is_defined)
        return NULL;
    *ret_length = read_le(body + prefix - 4, 4);
    return *ret_length > 0 && *ret_length <= message->length - prefix ? body + prefix : NULL;
}

static void read_fill(struct reader *reader)
{
    struct hdf5_dataset *dataset = reader->dataset;
    const struct hdf5_message *message = hdf5_message_find(reader->object, HDF5_FILL);
    uint64_t length = 0;
    if (message == NULL)
        message = hdf5_message_find(reader->object, HDF5_OLD_FILL);
    const unsigned char *value = message != NULL && !message->is_shared ? fill_value(message, &length) : NULL;
    if (value != NULL && length == dataset->type.size && length <= sizeof dataset->fill)
        memcpy(dataset->fill, value, (size_t)length);
}

/* Layouts. */

/* Checks that the elements lie in the file. */
static bool place(struct reader *reader, uint64_t address, uint64_t length, struct error *error)
{
    struct hdf5_dataset *dataset = reader->dataset;
    dataset->storage = HDF5_STORED;
    dataset->address = address;
    if (length < dataset->n_bytes)
        return hdf5_refuse(reader->file, reader->object->address,
                           "damaged: a dataset has fewer bytes than its shape needs", error);
    return hdf5_holds(reader->file, address, dataset->n_bytes) ||
           hdf5_refuse(reader->file, reader->object->address,
                       "truncated: the elements of a dataset are outside the file", error);
}

static bool read_compact(struct reader *reader, const struct hdf5_message *message, struct error *error)
{
    enum { PREFIX = 4 };
    uint64_t size = message->length >= PREFIX ? read_le(message->body + 2, 2) : 0;
    if (message->length < PREFIX || size > message->length - PREFIX)
        return hdf5_refuse(reader->file, message->address, damaged_layout, error);
    return place(reader, message->address + PREFIX, size, error);
}

static bool read_contiguous(struct reader *reader, const struct hdf5_message *message, struct error *error)
{
    if (message->length < 2 + 16)
        return hdf5_refuse(reader->file, message->address, damaged_layout, error);
    uint64_t address = read_le(message->body + 2, 8);
    if (address != HDF5_UNDEFINED && reader->dataset->n_bytes > 0)
        return place(reader, address, read_le(message->body + 10, 8), error);
    reader->dataset->storage = HDF5_UNWRITTEN;
    return true;
}

/* Sets the shape of chunks from numbers of `width` bytes; the last one is the size of an element. */
static bool set_chunk(struct reader *reader, const unsigned char *numbers, unsigned n, unsigned width)
{
    struct hdf5_dataset *dataset = reader->dataset;
    uint64_t bytes = dataset->type.size;
    if (n != dataset->rank + 1 || dataset->rank == 0 || width > 8)
        return false;
    if (read_le(numbers + (size_t)dataset->rank * width, width) != dataset->type.size)
        return false;
    for (unsigned i = 0; i < dataset->rank; i++) {
        dataset->chunk[i] = read_le(numbers + (size_t)i * width, width);
        if (dataset->chunk[i] == 0 || !checked_multiply(bytes, dataset->chunk[i], &bytes))
            return false;
    }
    dataset->chunk_bytes = bytes;
    if (bytes > MAX_CHUNK)
        leave_out(dataset, "its chunks are larger than 1 GiB, which wfs does not read");
    return true;
}

static bool read_chunked_3(struct reader *reader, const struct hdf5_message *message, struct error *error)
{
    enum { RANK = 2, TREE = 3, CHUNK = 11, WIDTH = 4 };
    unsigned n = message->length >= CHUNK ? message->body[RANK] : 0;
    if (n == 0 || message->length < CHUNK + (size_t)n * WIDTH || !set_chunk(reader, message->body + CHUNK, n, WIDTH))
        return hdf5_refuse(reader->file, message->address, damaged_layout, error);
    reader->dataset->index = HDF5_TREE_1;
    reader->dataset->address = read_le(message->body + TREE, 8);
    return true;
}

/* The oldest layouts, of versions 1 and 2: rank, class, 5 bytes, the address unless compact, a size for each dimension.
 */
enum { OLD_RANK = 1, OLD_CLASS = 2, OLD_ADDRESS = 8, OLD_SIZES = 16, OLD_WIDTH = 4 };

static bool read_chunked_1(struct reader *reader, const struct hdf5_message *message, struct error *error)
{
    unsigned n = message->body[OLD_RANK];
    if (message->length < OLD_SIZES + (size_t)n * OLD_WIDTH ||
        !set_chunk(reader, message->body + OLD_SIZES, n, OLD_WIDTH))
        return hdf5_refuse(reader->file, message->address, damaged_layout, error);
    reader->dataset->index = HDF5_TREE_1;
    reader->dataset->address = read_le(message->body + OLD_ADDRESS, 8);
    return true;
}

static bool read_compact_1(struct reader *reader, const struct hdf5_message *message, struct error *error)
{
    size_t at = OLD_ADDRESS + (size_t)message->body[OLD_RANK] * OLD_WIDTH, data = at + OLD_WIDTH;
    uint64_t size = message->length >= data ? read_le(message->body + at, OLD_WIDTH) : 0;
    if (message->length < data || size > message->length - data)
        return hdf5_refuse(reader->file, message->address, damaged_layout, error);
    return place(reader, message->address + data, size, error);
}

static bool read_contiguous_1(struct reader *reader, const struct hdf5_message *message, struct error *error)
{
    uint64_t address = read_le(message->body + OLD_ADDRESS, 8);
    if (address != HDF5_UNDEFINED && reader->dataset->n_bytes > 0)
        return place(reader, address, reader->dataset->n_bytes, error);
    reader->dataset->storage = HDF5_UNWRITTEN;
    return true;
}

static bool read_chunked_4(struct reader *reader, const struct hdf5_message *message, struct error *error)
{
    enum { FLAGS = 2, RANK = 3, WIDTH = 4, CHUNK = 5, ADDRESS = 8, FILTERED = 2, SINGLE = 12 };
    /* the bytes between the type of an index and its address */
    static const unsigned char n_parameters[] = {
        [HDF5_SINGLE] = 0, [HDF5_IMPLICIT] = 0, [HDF5_FIXED_ARRAY] = 1, [HDF5_EXTENSIBLE_ARRAY] = 5, [HDF5_TREE_2] = 6};
    struct hdf5_dataset *dataset = reader->dataset;
    const unsigned char *body = message->body;
    unsigned n = message->length >= CHUNK ? body[RANK] : 0, width = n > 0 ? body[WIDTH] : 0;
    size_t at = CHUNK + (size_t)n * width;
    if (n == 0 || width == 0 || message->length < at + 1 || !set_chunk(reader, body + CHUNK, n, width))
        return hdf5_refuse(reader->file, message->address, damaged_layout, error);
    dataset->index = body[at++];
    if (dataset->index < HDF5_SINGLE || dataset->index > HDF5_TREE_2)
        return hdf5_refuse(reader->file, message->address, damaged_layout, error);
    bool is_filtered = dataset->index == HDF5_SINGLE && (body[FLAGS] & FILTERED) != 0;
    size_t before = is_filtered ? SINGLE : n_parameters[dataset->index];
    if (message->length < at + before + ADDRESS)
        return hdf5_refuse(reader->file, message->address, damaged_layout, error);
    dataset->single_size = is_filtered ? read_le(body + at, 8) : dataset->chunk_bytes;
    dataset->single_mask = is_filtered ? (uint32_t)read_le(body + at + 8, 4) : 0;
    dataset->address = read_le(body + at + before, ADDRESS);
    return true;
}

static bool read_chunked(struct reader *reader, const struct hdf5_message *message, struct error *error)
{
    const struct hdf5_message *filters = hdf5_message_find(reader->object, HDF5_FILTERS);
    struct hdf5_dataset *dataset = reader->dataset;
    dataset->storage = HDF5_CHUNKED;
    unsigned version = message->body[0];
    if (!(version < 3 ? read_chunked_1 : version == 3 ? read_chunked_3 : read_chunked_4)(reader, message, error))
        return false;
    if (filters != NULL && filters->is_shared)
        leave_out(dataset, "shared filters are not supported");
    else if (filters != NULL && !hdf5_filters_read(reader->file, filters, reader->arena, &dataset->filters, error))
        return false;
    if (dataset->filters.refusal != NULL)
        leave_out(dataset, dataset->filters.refusal);
    return true;
}

enum layout_class { COMPACT, CONTIGUOUS, CHUNKED, VIRTUAL };

static bool read_old_layout(struct reader *reader, const struct hdf5_message *message, struct error *error)
{
    unsigned class = message->length >= OLD_ADDRESS ? message->body[OLD_CLASS] : VIRTUAL;
    if (class == COMPACT)
        return read_compact_1(reader, message, error);
    if (class > CHUNKED || message->length < OLD_SIZES)
        return hdf5_refuse(reader->file, message->address, damaged_layout, error);
    return (class == CHUNKED ? read_chunked : read_contiguous_1)(reader, message, error);
}

static bool read_layout(struct reader *reader, const struct hdf5_message *message, struct error *error)
{
    enum { LEAST = 2, OLD = 2, NEWEST = 5 };
    const unsigned char *body = message->body;
    if (message->length < LEAST || message->is_shared || body[0] == 0)
        return hdf5_refuse(reader->file, message->address, damaged_layout, error);
    if (body[0] <= OLD)
        return read_old_layout(reader, message, error);
    if (body[0] > NEWEST) {
        leave_out(reader->dataset, "the version of its layout is not supported");
        return true;
    }
    switch (body[1]) {
    case COMPACT:
        return read_compact(reader, message, error);
    case CONTIGUOUS:
        return read_contiguous(reader, message, error);
    case CHUNKED:
        return read_chunked(reader, message, error);
    case VIRTUAL:
        leave_out(reader->dataset, "a virtual dataset, whose elements may be in other files, is not supported");
        return true;
    default:
        return hdf5_refuse(reader->file, message->address, damaged_layout, error);
    }
}

/* Datasets. */

/* Finds the datatype that a shared message points to: one with a name, an object of its own. Types in the heap of
 * shared messages stay as they are, and have no values. */
static bool find_named_type(const struct reader *reader, const struct hdf5_message **type, struct error *error)
{
    enum { FIRST = 1, NEWEST = 3, NAMED = 2, SHORT = 2, LONG = 8, ADDRESS = 8 };
    const struct hdf5_message *message = *type, *found;
    struct hdf5_object *object = arena_alloc(reader->arena, sizeof *object);
    unsigned version = message->length >= SHORT ? message->body[0] : 0;
    size_t at = version == FIRST ? LONG : SHORT;
    if (version < FIRST || version > NEWEST || message->length < at + ADDRESS)
        return hdf5_refuse(reader->file, message->address, "damaged: a shared datatype", error);
    if (version == NEWEST && message->body[1] != NAMED)
        return true;
    if (!hdf5_object_read(reader->file, read_le(message->body + at, ADDRESS), reader->arena, object, error))
        return false;
    found = hdf5_message_find(object, HDF5_DATATYPE);
    if (found == NULL || found->is_shared)
        return hdf5_refuse(reader->file, message->address, "damaged: a shared datatype", error);
    *type = found;
    return true;
}

bool hdf5_is_dataset(const struct hdf5_object *object)
{
    return hdf5_message_find(object, HDF5_LAYOUT) != NULL;
}

bool hdf5_dataset_read(struct hdf5 *file, const struct hdf5_object *object, struct arena *arena,
                       struct hdf5_dataset *dataset, struct error *error)
{
    struct reader reader = {file, object, arena, dataset};
    const struct hdf5_message *type = hdf5_message_find(object, HDF5_DATATYPE),
                              *space = hdf5_message_find(object, HDF5_DATASPACE);
    *dataset = (struct hdf5_dataset){.storage = HDF5_UNWRITTEN};
    if (type == NULL || space == NULL)
        return hdf5_refuse(file, object->address, "damaged: a dataset without a datatype or a shape", error);
    if (type->is_shared && !find_named_type(&reader, &type, error))
        return false;
    if (!hdf5_type_read(file, type, &dataset->type, error))
        return false;
    if (dataset->type.is_opaque && is_bfloat16(&reader)) {
        dataset->type.refusal = NULL;
        dataset->type.dtype = dtype_by_name("BF16");
    }
    if (dataset->type.refusal != NULL) {
        leave_out(dataset, dataset->type.refusal);
        dataset->is_no_number = dataset->type.is_no_number;
    }
    if (!read_dataspace(&reader, space, error))
        return false;
    if (!shape_size(dataset->type.dtype, dataset->shape, dataset->rank, &dataset->n_elements, &dataset->n_bytes, NULL))
        return hdf5_refuse(file, object->address, "the size of a dataset overflows", error);
    if (hdf5_message_find(object, HDF5_EXTERNAL_FILES) != NULL)
        leave_out(dataset, "its elements are in other files, which wfs does not open");
    if (dataset->refusal != NULL)
        return true;
    read_fill(&reader);
    return read_layout(&reader, hdf5_message_find(object, HDF5_LAYOUT), error);
}
