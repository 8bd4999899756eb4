#include "formats/torch/tensors.h"

#include "base/checked.h"
#include "formats/bits.h"
#include "formats/shape.h"
#include "formats/zip/zip.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Types of elements. */

/* UntypedStorage counts bytes. Sub-byte types that torch keeps one to a byte, and bits without a meaning, are
 * integers. */
static const struct torch_dtype rows[] = {
    {"float32", "FloatStorage", "F32", 4, false},
    {"float16", "HalfStorage", "F16", 2, false},
    {"bfloat16", "BFloat16Storage", "BF16", 2, false},
    {"float64", "DoubleStorage", "F64", 8, false},
    {"int64", "LongStorage", "I64", 8, false},
    {"int32", "IntStorage", "I32", 4, false},
    {"int16", "ShortStorage", "I16", 2, false},
    {"int8", "CharStorage", "I8", 1, false},
    {"uint8", "ByteStorage", "U8", 1, false},
    {"uint8", "UntypedStorage", "U8", 1, false},
    {"bool", "BoolStorage", "BOOL", 1, false},
    {"complex64", "ComplexFloatStorage", "C64", 4, false},
    {"complex128", "ComplexDoubleStorage", "C128", 8, false},
    {"qint8", "QInt8Storage", "I8", 1, true},
    {"quint8", "QUInt8Storage", "U8", 1, true},
    {"qint32", "QInt32Storage", "I32", 4, true},
    {"quint4x2", "QUInt4x2Storage", "U8", 1, true},
    {"quint2x4", "QUInt2x4Storage", "U8", 1, true},
    {"half", NULL, "F16", 2, false},
    {"float", NULL, "F32", 4, false},
    {"double", NULL, "F64", 8, false},
    {"short", NULL, "I16", 2, false},
    {"int", NULL, "I32", 4, false},
    {"long", NULL, "I64", 8, false},
    {"uint16", NULL, "U16", 2, false},
    {"uint32", NULL, "U32", 4, false},
    {"uint64", NULL, "U64", 8, false},
    {"complex32", NULL, "C32", 2, false},
    {"chalf", NULL, "C32", 2, false},
    {"cfloat", NULL, "C64", 4, false},
    {"cdouble", NULL, "C128", 8, false},
    {"float8_e4m3fn", NULL, "F8_E4M3", 1, false},
    {"float8_e5m2", NULL, "F8_E5M2", 1, false},
    {"float8_e4m3fnuz", NULL, "F8_E4M3FNUZ", 1, false},
    {"float8_e5m2fnuz", NULL, "F8_E5M2FNUZ", 1, false},
    {"float8_e8m0fnu", NULL, "F8_E8M0", 1, false},
    {"float4_e2m1fn_x2", NULL, "F4", 1, false},
    {"bits8", NULL, "U8", 1, false},
    {"bits16", NULL, "U16", 2, false},
    {"bits1x8", NULL, "U8", 1, false},
    {"bits2x4", NULL, "U8", 1, false},
    {"bits4x2", NULL, "U8", 1, false},
    {"int1", NULL, "I8", 1, false},
    {"int2", NULL, "I8", 1, false},
    {"int3", NULL, "I8", 1, false},
    {"int4", NULL, "I8", 1, false},
    {"int5", NULL, "I8", 1, false},
    {"int6", NULL, "I8", 1, false},
    {"int7", NULL, "I8", 1, false},
    {"uint1", NULL, "U8", 1, false},
    {"uint2", NULL, "U8", 1, false},
    {"uint3", NULL, "U8", 1, false},
    {"uint4", NULL, "U8", 1, false},
    {"uint5", NULL, "U8", 1, false},
    {"uint6", NULL, "U8", 1, false},
    {"uint7", NULL, "U8", 1, false},
};

enum { N_ROWS = sizeof rows / sizeof *rows };

const struct torch_dtype *torch_dtype_by_name(const char *name)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const struct torch_dtype *torch_dtype_by_storage(const char *name)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (rows[i].storage != NULL && strcmp(rows[i].storage, name) == 0)
            return &rows[i];
    return NULL;
}

enum { MAX_WRAPPERS = 16, MAX_KEY = 64 };

bool torch_refuse(const struct torch_container *container, const struct pickle_node *node, struct error *error,
                  const char *format, ...)
{
    char reason[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return error_set(error, "%s: offset %" PRIu64 ": %s", container->place, (uint64_t)node->offset, reason);
}

/* Persistent ids. */

static bool is_key(const struct pickle_node *key)
{
    if (!pickle_is(key, PICKLE_TEXT) || key->text.length == 0 || key->text.length > MAX_KEY)
        return false;
    for (size_t i = 0; i < key->text.length; i++) {
        char c = key->text.bytes[i];
        if (!(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && c != '_')
            return false;
    }
    return true;
}

bool torch_storage_id(const struct torch_container *container, const struct pickle_node *persistent,
                      struct torch_storage_id *ret_id, bool *ret_is_storage, struct error *error)
{
    const struct pickle_node *id = persistent->persistent.id, *class = pickle_at(id, 1), *key = pickle_at(id, 2);
    *ret_is_storage = false;
    if (pickle_is(id, PICKLE_TUPLE) && pickle_text_is(pickle_at(id, 0), "module"))
        return true;
    if (!pickle_is(id, PICKLE_TUPLE) || !pickle_text_is(pickle_at(id, 0), "storage"))
        return torch_refuse(container, persistent, error, "a persistent id that is not a storage");
    if (pickle_count(id) != 5 && pickle_count(id) != 6)
        return torch_refuse(container, persistent, error, "a storage of %u fields, not 5 or 6", pickle_count(id));
    if (!pickle_is(class, PICKLE_GLOBAL))
        return torch_refuse(container, persistent, error, "a storage without a class");
    const struct torch_dtype *dtype =
        class->meaning == GLOBAL_STORAGE ? torch_dtype_by_storage(class->global.name) : NULL;
    if (dtype == NULL)
        return torch_refuse(container, persistent, error, "a storage of unknown class %s.%s", class->global.module,
                            class->global.name);
    if (!is_key(key))
        return torch_refuse(container, persistent, error,
                            "a storage whose key has characters other than letters, digits and '_'");
    int64_t n_elements;
    uint64_t n_bytes;
    if (!pickle_integer(pickle_at(id, 4), &n_elements) || n_elements < 0)
        return torch_refuse(container, persistent, error, "storage '%.*s': its number of elements is not a number",
                            (int)key->text.length, key->text.bytes);
    if (!checked_multiply((uint64_t)n_elements, dtype_by_name(dtype->dtype)->block_bytes, &n_bytes) ||
        n_bytes > INT64_MAX)
        return torch_refuse(container, persistent, error, "storage '%.*s': the size of %" PRId64 " elements overflows",
                            (int)key->text.length, key->text.bytes, n_elements);
    const struct pickle_node *view = pickle_at(id, 5);
    *ret_id = (struct torch_storage_id){
        .key = key->text.bytes,
        .key_length = key->text.length,
        .dtype = dtype,
        .untyped = strcmp(class->global.name, "UntypedStorage") == 0,
        .n_elements = (uint64_t)n_elements,
        .n_bytes = n_bytes,
        .view = pickle_is(view, PICKLE_NONE) ? NULL : view,
    };
    *ret_is_storage = true;
    return true;
}

/* Tensors. */

/* The function and arguments of a REDUCE or NEWOBJ, after unwrapping _rebuild_from_type. */
struct call {
    const struct pickle_node *node; /* for messages */
    enum global_meaning meaning;
    const struct pickle_node *arguments;
};

static struct call call_of(const struct pickle_node *node)
{
    struct call call = {node, (enum global_meaning)node->meaning, node->object->arguments};
    const struct pickle_node *state = node->object->state;
    if (call.meaning == GLOBAL_TENSOR_CLASS && pickle_count(state) >= 4 &&
        pickle_is(pickle_at(state, 0), PICKLE_PERSISTENT)) {
        call.meaning = GLOBAL_REBUILD_TENSOR;
        call.arguments = state;
    }
    if (call.meaning == GLOBAL_REBUILD_FROM_TYPE && pickle_is(pickle_at(call.arguments, 0), PICKLE_GLOBAL)) {
        call.meaning = (enum global_meaning)pickle_at(call.arguments, 0)->meaning;
        call.arguments = pickle_at(call.arguments, 2);
    }
    return call;
}

static bool makes_tensor(enum global_meaning meaning)
{
    return meaning >= GLOBAL_REBUILD_TENSOR && meaning <= GLOBAL_REBUILD_ON_DEVICE;
}

static bool is_array(const struct pickle_node *node)
{
    return torch_holds_array(node) && !torch_array_of_objects(node, NULL, NULL);
}

bool torch_is_tensor(const struct pickle_node *node)
{
    if (!pickle_is(node, PICKLE_OBJECT))
        return false;
    if (is_array(node) || makes_tensor((enum global_meaning)node->meaning))
        return true;
    if (node->meaning != GLOBAL_TENSOR_CLASS)
        return false;
    const struct pickle_node *state = node->object->state, *first = pickle_at(node->object->arguments, 0);
    bool from_state = pickle_count(state) >= 4 && pickle_is(pickle_at(state, 0), PICKLE_PERSISTENT);
    return from_state ||
           (pickle_is(first, PICKLE_OBJECT) && first != node && makes_tensor((enum global_meaning)first->meaning));
}

struct pickle_node *torch_inner_tensors(const struct pickle_node *node)
{
    if (!pickle_object_is(node, GLOBAL_REBUILD_FROM_TYPE))
        return NULL;
    return call_of(node).meaning == GLOBAL_REBUILD_WRAPPER ? pickle_at(node->object->arguments, 3) : NULL;
}

bool torch_sizes(const struct pickle_node *node, uint64_t *sizes, unsigned *ret_rank)
{
    if (pickle_object_is(node, GLOBAL_FIRST))
        node = pickle_at(node->object->arguments, 0);
    if (!pickle_is(node, PICKLE_TUPLE) && !pickle_is(node, PICKLE_LIST))
        return false;
    uint32_t rank = pickle_count(node);
    if (rank > SHAPE_MAX_RANK)
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t size;
        if (!pickle_integer(pickle_at(node, i), &size) || size < 0)
            return false;
        sizes[i] = (uint64_t)size;
    }
    *ret_rank = rank;
    return true;
}

static bool set_shape(const struct torch_container *container, const struct call *call, struct tensor *tensor,
                      const struct torch_dtype *dtype, const struct pickle_node *size, struct error *error)
{
    uint64_t shape[SHAPE_MAX_RANK], n_elements, n_bytes;
    unsigned rank;
    if (!torch_sizes(size, shape, &rank))
        return torch_refuse(container, call->node, error, "a tensor whose sizes are not at most %d numbers >= 0",
                            SHAPE_MAX_RANK);
    tensor->dtype = dtype_by_name(dtype->dtype);
    bool packed = tensor->dtype->block_elements > 1;
    if (packed && (rank == 0 || !checked_multiply(shape[rank - 1], tensor->dtype->block_elements, &shape[rank - 1])))
        return torch_refuse(container, call->node, error, "a tensor of torch.%s without a last dimension", dtype->name);
    if (!shape_size(tensor->dtype, shape, rank, &n_elements, &n_bytes, NULL) || n_bytes > INT64_MAX)
        return torch_refuse(container, call->node, error, "a tensor whose size in bytes overflows");
    tensor->rank = (uint8_t)rank;
    tensor->shape = arena_copy(container->checkpoint->arena, shape, rank * sizeof *shape);
    return true;
}

/* Reports whether the elements are contiguous in row-major order; strides of dimensions of size 1 do not count. */
static bool is_row_major(const struct tensor *tensor, const uint64_t *strides)
{
    uint64_t expected = 1, block = tensor->dtype->block_elements;
    for (unsigned i = tensor->rank; i-- > 0;) {
        uint64_t size = i + 1 == tensor->rank ? tensor->shape[i] / block : tensor->shape[i];
        if (size != 1 && strides[i] != expected)
            return false;
        expected *= size;
    }
    return true;
}

/* Computes the number of units from the first element to the last, both included. */
static bool strided_span(const struct tensor *tensor, const uint64_t *strides, uint64_t *ret_span)
{
    uint64_t span = 1, block = tensor->dtype->block_elements;
    for (unsigned i = 0; i < tensor->rank; i++) {
        uint64_t size = i + 1 == tensor->rank ? tensor->shape[i] / block : tensor->shape[i], part;
        if (!checked_multiply(size - 1, strides[i], &part) || !checked_add(span, part, &span))
            return false;
    }
    *ret_span = span;
    return true;
}

bool torch_place(struct arena *arena, struct tensor *tensor, const struct torch_storage *storage, uint64_t first,
                 const uint64_t *strides, uint64_t *ret_span)
{
    uint64_t unit = tensor->dtype->block_bytes, end;
    *ret_span = 0;
    if (tensor_elements(tensor) == 0)
        return true;
    if (!strided_span(tensor, strides, ret_span) || !checked_add(first, *ret_span, &end) ||
        end > storage->n_bytes / unit)
        return false;
    tensor->source = storage->source;
    tensor->offset = storage->offset + first * unit;
    tensor->length = *ret_span * unit;
    if (!is_row_major(tensor, strides))
        tensor->strides = arena_copy(arena, strides, tensor->rank * sizeof *strides);
    return true;
}

/* Finds the tensor's bytes in its storage. */
static bool place_tensor(const struct torch_container *container, const struct call *call, struct tensor *tensor,
                         const struct torch_storage *storage, struct error *error)
{
    uint64_t strides[SHAPE_MAX_RANK], span;
    int64_t first;
    unsigned rank;
    if (!pickle_integer(pickle_at(call->arguments, 1), &first) || first < 0)
        return torch_refuse(container, call->node, error, "a tensor whose offset is not a number >= 0");
    if (!torch_sizes(pickle_at(call->arguments, 3), strides, &rank) || rank != tensor->rank)
        return torch_refuse(container, call->node, error,
                            "a tensor of %u sizes whose strides are not as many numbers >= 0", tensor->rank);
    if (torch_place(container->checkpoint->arena, tensor, storage, (uint64_t)first, strides, &span))
        return true;
    return torch_refuse(container, call->node, error,
                        "a tensor of elements [%" PRId64 ", +%" PRIu64 ") in a storage of %" PRIu64 " elements", first,
                        span, storage->n_bytes / tensor->dtype->block_bytes);
}

static const struct pickle_node *metadata_of(const struct call *call)
{
    return pickle_at(call->arguments, call->meaning == GLOBAL_REBUILD_TENSOR_V3 ? 7 : 6);
}

/* Applies the byte order, and the flags that make a tensor the conjugate or negative of its bytes. */
static void set_bits(const struct torch_container *container, const struct call *call, const struct torch_dtype *dtype,
                     const struct torch_storage *storage, struct tensor *tensor)
{
    const struct pickle_node *metadata = metadata_of(call);
    struct bits bits = {
        .component_bytes = dtype->component_bytes,
        .swap = container->big_endian && dtype->component_bytes > 1,
        .negate = pickle_is(pickle_get(metadata, "neg"), PICKLE_TRUE),
        .conjugate = pickle_is(pickle_get(metadata, "conj"), PICKLE_TRUE),
    };
    bool one_to_a_block = tensor->dtype->block_elements == 1, complex = tensor->dtype->kind == DTYPE_COMPLEX;
    if (bits.swap && storage->untyped)
        tensor->refusal = "torch cannot read this dtype from a big-endian file";
    else if (bits.negate && (!one_to_a_block || tensor->dtype->kind == DTYPE_INTEGER))
        tensor->refusal = "a tensor of this dtype with its negative bit set is not supported";
    else if (!one_to_a_block && tensor->strides != NULL)
        tensor->refusal = "a view that is not contiguous is not supported for this dtype";
    else if (bits.swap || bits.negate || (bits.conjugate && complex))
        tensor->view = view_bits(container->checkpoint->arena, tensor_view(tensor, container->checkpoint->arena), bits);
}

static const struct torch_dtype *constant_dtype(const struct pickle_node *node)
{
    bool constant = pickle_is(node, PICKLE_GLOBAL) && node->meaning == GLOBAL_CONSTANT;
    return constant && strcmp(node->global.module, "torch") == 0 ? torch_dtype_by_name(node->global.name) : NULL;
}

/* Returns the storage of a call's tensor; NULL, with a reason if it is nested and cannot be read. */
static const struct torch_storage *storage_of(const struct torch_container *container, const struct call *call,
                                              struct error *reason)
{
    struct pickle_node *from = pickle_at(call->arguments, 0);
    if (pickle_object_is(from, GLOBAL_LOAD_FROM_BYTES))
        return torch_nested_storage(container, from, reason);
    return pickle_is(from, PICKLE_PERSISTENT) ? &container->storages[from->persistent.index] : NULL;
}

static bool rebuild_tensor(const struct torch_container *container, const struct call *call, struct tensor *tensor,
                           struct torch_stored *ret_stored, struct error *error)
{
    struct error reason = {""};
    const struct torch_storage *storage = storage_of(container, call, &reason);
    if (storage == NULL && *reason.message != '\0') {
        tensor->refusal =
            arena_printf(container->checkpoint->arena, "its nested storage cannot be read: %s", reason.message);
        return set_shape(container, call, tensor, torch_dtype_by_name("uint8"), pickle_at(call->arguments, 2), error);
    }
    if (storage == NULL || storage->dtype == NULL)
        return torch_refuse(container, call->node, error, "a tensor without a storage");
    const struct torch_dtype *dtype = storage->dtype;
    if (call->meaning == GLOBAL_REBUILD_TENSOR_V3)
        dtype = constant_dtype(pickle_at(call->arguments, 6));
    if (dtype == NULL)
        return torch_refuse(container, call->node, error, "a tensor of an unknown dtype");
    *ret_stored = storage->stored;
    if (!set_shape(container, call, tensor, dtype, pickle_at(call->arguments, 2), error))
        return false;
    if (call->meaning == GLOBAL_REBUILD_QUANTIZED || dtype->quantized) {
        tensor->refusal = "quantized tensors are not supported"; /* elements of 2 and 4 bits share bytes */
        return true;
    }
    if (!place_tensor(container, call, tensor, storage, error))
        return false;
    set_bits(container, call, dtype, storage, tensor);
    return true;
}

/* Lists a tensor without values of its own, with dtype and shape if they are known. */
static bool list_only(const struct torch_container *container, const struct call *call, struct tensor *tensor,
                      struct error *error)
{
    uint64_t sizes[SHAPE_MAX_RANK];
    unsigned rank, first = call->meaning == GLOBAL_REBUILD_META ? 0 : 1;
    const struct torch_dtype *dtype = constant_dtype(pickle_at(call->arguments, first));
    const struct pickle_node *size = pickle_at(call->arguments, first + 1);
    if (call->meaning == GLOBAL_REBUILD_META)
        tensor->refusal = "a meta tensor has no values";
    else if (call->meaning == GLOBAL_REBUILD_WRAPPER)
        tensor->refusal = "a tensor subclass that keeps its values in other tensors";
    else
        tensor->refusal = "nested tensors are not supported";
    if (dtype == NULL || !torch_sizes(size, sizes, &rank))
        return true;
    return set_shape(container, call, tensor, dtype, size, error);
}

/* Lists a sparse tensor: (layout, (indices, values, size[, coalesced])); CSR and its kin have one more item before the
 * values. */
static bool list_sparse(const struct torch_container *container, const struct call *call, struct tensor *tensor,
                        struct error *error)
{
    const struct pickle_node *parts = pickle_at(call->arguments, 1);
    uint32_t at = torch_is_tensor(pickle_at(parts, 2)) ? 2 : 1;
    const struct pickle_node *values = pickle_at(parts, at);
    tensor->refusal = "sparse tensors are not supported";
    if (!torch_is_tensor(values) || is_array(values))
        return torch_refuse(container, call->node, error, "a sparse tensor without values");
    struct call of_values = call_of(values);
    struct error reason = {""};
    const struct torch_storage *storage = storage_of(container, &of_values, &reason);
    const struct torch_dtype *dtype = constant_dtype(pickle_at(of_values.arguments, 6));
    if (dtype == NULL && storage != NULL)
        dtype = storage->dtype;
    if (dtype == NULL && *reason.message != '\0')
        return true;
    if (dtype == NULL)
        return torch_refuse(container, call->node, error, "a sparse tensor whose values have no dtype");
    return set_shape(container, call, tensor, dtype, pickle_at(parts, at + 1), error);
}

/* Refuses a tensor that would become another dtype on loading. */
static bool refuse_conversion(struct tensor *tensor, const struct pickle_node *wanted)
{
    const struct torch_dtype *dtype = constant_dtype(wanted);
    if (dtype == NULL || strcmp(dtype->dtype, tensor->dtype->name) != 0)
        tensor->refusal = "tensors that change dtype on load are not supported";
    return true;
}

static bool make_from_call(const struct torch_container *container, const struct call *call, struct tensor *tensor,
                           struct torch_stored *ret_stored, struct error *error)
{
    switch (call->meaning) {
    case GLOBAL_REBUILD_TENSOR:
    case GLOBAL_REBUILD_TENSOR_V2:
    case GLOBAL_REBUILD_TENSOR_V3:
    case GLOBAL_REBUILD_QUANTIZED:
        return rebuild_tensor(container, call, tensor, ret_stored, error);
    case GLOBAL_REBUILD_SPARSE:
        return list_sparse(container, call, tensor, error);
    case GLOBAL_REBUILD_NESTED:
    case GLOBAL_REBUILD_META:
    case GLOBAL_REBUILD_WRAPPER:
        return list_only(container, call, tensor, error);
    case GLOBAL_FOREIGN: /* of a subclass, such as nested tensors of the layout jagged */
        tensor->refusal = "a tensor subclass that wfs does not know";
        return true;
    default:
        return torch_refuse(container, call->node, error, "a tensor made by a function that returns none");
    }
}

bool torch_make_tensor(const struct torch_container *container, const struct pickle_node *node,
                       struct tensor *ret_tensor, struct torch_stored *ret_stored, struct error *error)
{
    const struct pickle_node *inner = node, *converted = NULL;
    *ret_tensor = (struct tensor){.source = container->file, .dtype = dtype_by_name("U8")};
    *ret_stored = (struct torch_stored){0};
    for (int i = 0; i < MAX_WRAPPERS && torch_is_tensor(inner); i++) {
        struct call call = call_of(inner);
        if (call.meaning == GLOBAL_REBUILD_ON_DEVICE)
            converted = pickle_at(call.arguments, 1);
        bool wrapper = call.meaning == GLOBAL_REBUILD_PARAMETER || call.meaning == GLOBAL_REBUILD_ON_DEVICE ||
                       call.meaning == GLOBAL_TENSOR_CLASS;
        if (wrapper) {
            inner = pickle_at(call.arguments, 0);
            continue;
        }
        bool made = is_array(inner) ? torch_make_array(container, inner, ret_tensor, ret_stored, error)
                                    : make_from_call(container, &call, ret_tensor, ret_stored, error);
        return made && (converted == NULL || refuse_conversion(ret_tensor, converted));
    }
    return torch_refuse(container, node, error, "a tensor made from an unknown object");
}

bool torch_values_read(struct pickle *pickle, const struct source *source, struct arena *arena, struct error *error)
{
    struct zip_directory zip;
    if (!zip_directory_read(&zip, source, arena, error))
        return false;
    const char *first = zip.n_members > 0 ? zip.members[0].name : "", *slash = strchr(first, '/');
    const char *name = arena_printf(arena, "%.*sdata.pkl", slash != NULL ? (int)(slash - first) + 1 : 0, first);
    const struct zip_member *member = zip_directory_find(&zip, name, strlen(name));
    if (member == NULL || member->method != ZIP_STORED)
        return error_set(error, "%s: %s is missing, or compressed", source_name(source), name);
    char *bytes = zip_member_read(&zip, member, PICKLE_MAX_BYTES, error);
    if (bytes == NULL)
        return false;
    arena_adopt(arena, bytes, (size_t)member->size);
    return pickle_read(pickle, bytes, (size_t)member->size, arena, NULL, error) ||
           error_prefix(error, "%s: %s", source_name(source), name);
}
