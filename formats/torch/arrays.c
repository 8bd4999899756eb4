/* numpy arrays inside pickles, and those of JAX, which pickles them as numpy's with a function of its own around.
 * Source: numpy/core/src/multiarray/methods.c, array_reduce and array_setstate; jax/_src/array.py,
 * ArrayImpl.__reduce__(). */
#include "base/sort.h"
#include "base/text.h"
#include "formats/bits.h"
#include "formats/shape.h"
#include "formats/torch/tensors.h"

#include <stdlib.h>
#include <string.h>

const struct dtype *torch_numpy_dtype(const struct pickle_node *node, bool *ret_swapped)
{
    static const char *const names[][2] = {
        {"f4", "F32"}, {"f8", "F64"}, {"f2", "F16"}, {"i1", "I8"},  {"i2", "I16"},  {"i4", "I32"}, {"i8", "I64"},
        {"u1", "U8"},  {"u2", "U16"}, {"u4", "U32"}, {"u8", "U64"}, {"b1", "BOOL"}, {"c8", "C64"}, {"c16", "C128"},
    };
    static const char *const classes[][2] = {
        {"bfloat16", "BF16"},          {"float8_e4m3fn", "F8_E4M3"},       {"float8_e5m2", "F8_E5M2"},
        {"float8_e8m0fnu", "F8_E8M0"}, {"float8_e4m3fnuz", "F8_E4M3FNUZ"}, {"float8_e5m2fnuz", "F8_E5M2FNUZ"},
    };
    if (!pickle_object_is(node, GLOBAL_NUMPY_DTYPE))
        return NULL;
    const struct pickle_node *name = pickle_at(node->object->arguments, 0), *state = node->object->state;
    bool plain =
        state == NULL || (pickle_is(pickle_at(state, 2), PICKLE_NONE) && pickle_is(pickle_at(state, 3), PICKLE_NONE));
    *ret_swapped = pickle_text_is(pickle_at(state, 1), ">");
    for (size_t i = 0; plain && i < sizeof names / sizeof *names; i++)
        if (pickle_text_is(name, names[i][0]))
            return dtype_by_name(names[i][1]);
    bool is_class = pickle_is(name, PICKLE_GLOBAL) && strcmp(name->global.module, "ml_dtypes") == 0;
    for (size_t i = 0; plain && is_class && i < sizeof classes / sizeof *classes; i++)
        if (strcmp(name->global.name, classes[i][0]) == 0)
            return dtype_by_name(classes[i][1]);
    return NULL;
}

/* Decodes the code points of UTF-8 text to bytes; false if one is above 255. */
static bool decode_latin1(const char *text, size_t length, unsigned char *out, size_t *ret_length)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x80) {
            if ((c != 0xc2 && c != 0xc3) || i + 1 == length)
                return false;
            c = (unsigned char)(c << 6 | ((unsigned char)text[++i] & 0x3f));
        }
        out[n++] = c;
    }
    *ret_length = n;
    return true;
}

/* Copies bytes for torch_bytes(), decoded or not; NULL also for bytes that are not in memory. */
static const void *copy_bytes(struct arena *arena, const struct pickle_node *node, size_t *ret_length)
{
    if (node != NULL && node->absent)
        return NULL;
    if (pickle_is(node, PICKLE_BYTES) || (pickle_is(node, PICKLE_TEXT) && node->old)) {
        *ret_length = node->text.length;
        return arena_copy(arena, node->text.bytes, node->text.length);
    }
    if (!pickle_object_is(node, GLOBAL_ENCODE))
        return NULL;
    const struct pickle_node *text = pickle_at(node->object->arguments, 0),
                             *codec = pickle_at(node->object->arguments, 1);
    if (!pickle_is(text, PICKLE_TEXT) || !pickle_text_is(codec, "latin1"))
        return NULL;
    unsigned char *bytes = arena_alloc(arena, text->text.length);
    return decode_latin1(text->text.bytes, text->text.length, bytes, ret_length) ? bytes : NULL;
}

const void *torch_bytes(struct arena *arena, struct pickle_node *node, size_t *ret_length)
{
    if (node != NULL && (node->mark & TORCH_COPIED)) {
        *ret_length = node->text.length;
        return node->text.bytes;
    }
    const void *bytes = copy_bytes(arena, node, ret_length);
    if (bytes == NULL)
        return NULL;
    node->kind = PICKLE_BYTES;
    node->mark |= TORCH_COPIED;
    node->text.bytes = bytes;
    node->text.length = *ret_length;
    return bytes;
}

struct array {
    struct pickle_node *shape, *dtype, *data;
    bool column_major;
};

/* Returns the state that numpy's arrays get by BUILD. */
static const struct pickle_node *state_of(const struct pickle_node *node)
{
    return node->meaning == GLOBAL_JAX_ARRAY ? pickle_at(node->object->arguments, 2) : node->object->state;
}

bool torch_holds_array(const struct pickle_node *node)
{
    if (pickle_object_is(node, GLOBAL_NUMPY_FROM_BUFFER))
        return true;
    return (pickle_object_is(node, GLOBAL_NUMPY_ARRAY) || pickle_object_is(node, GLOBAL_JAX_ARRAY)) &&
           state_of(node) != NULL;
}

static struct array array_of(const struct pickle_node *node)
{
    if (node->meaning == GLOBAL_NUMPY_FROM_BUFFER) {
        const struct pickle_node *arguments = node->object->arguments;
        return (struct array){pickle_at(arguments, 2), pickle_at(arguments, 1), pickle_at(arguments, 0),
                              pickle_text_is(pickle_at(arguments, 3), "F")};
    }
    const struct pickle_node *state = state_of(node);
    uint32_t at = pickle_count(state) == 5; /* begins with a version */
    const struct pickle_node *column_major = pickle_at(state, at + 2);
    int64_t number;
    return (struct array){pickle_at(state, at), pickle_at(state, at + 1), pickle_at(state, at + 3),
                          pickle_is(column_major, PICKLE_TRUE) ||
                              (pickle_integer(column_major, &number) && number != 0)};
}

/* Returns the elements in memory order, as a flat view. Bytes that lie unchanged in the file stay there. */
static const struct view *array_elements(const struct torch_container *container, struct pickle_node *data,
                                         struct tensor *tensor, uint64_t n_elements, uint64_t n_bytes)
{
    struct arena *arena = container->checkpoint->arena;
    if (container->pickle_mapped && pickle_is(data, PICKLE_BYTES) && !(data->mark & TORCH_COPIED)) {
        tensor->offset = container->pickle_offset + (uint64_t)(data->text.bytes - container->pickle_bytes);
        tensor->length = n_bytes;
        return data->text.length != n_bytes
                   ? NULL
                   : view_of_source(arena, container->file, tensor->offset, tensor->dtype, 1, &n_elements);
    }
    size_t length = 0;
    const void *bytes = torch_bytes(arena, data, &length);
    return bytes == NULL || length != n_bytes ? NULL : view_literal(arena, tensor->dtype, 1, &n_elements, bytes);
}

static void column_major_strides(const uint64_t *shape, unsigned rank, uint64_t *strides)
{
    uint64_t stride = 1;
    for (unsigned i = 0; i < rank; i++) {
        strides[i] = stride;
        stride *= shape[i];
    }
}

bool torch_array_of_objects(const struct pickle_node *node, struct pickle_node **ret_shape,
                            struct pickle_node **ret_dtype)
{
    if (!torch_holds_array(node))
        return false;
    struct array array = array_of(node);
    struct pickle_node *name =
        pickle_object_is(array.dtype, GLOBAL_NUMPY_DTYPE) ? pickle_at(array.dtype->object->arguments, 0) : NULL;
    if (!pickle_is(name, PICKLE_TEXT) || name->text.length == 0 || memchr("USOMmT", name->text.bytes[0], 6) == NULL)
        return false;
    if (ret_shape != NULL)
        *ret_shape = array.shape;
    if (ret_dtype != NULL)
        *ret_dtype = name;
    return true;
}

bool torch_make_array(const struct torch_container *container, const struct pickle_node *node,
                      struct tensor *ret_tensor, struct torch_stored *ret_stored, struct error *error)
{
    struct arena *arena = container->checkpoint->arena;
    struct array array = array_of(node);
    uint64_t shape[SHAPE_MAX_RANK], strides[SHAPE_MAX_RANK], n_elements, n_bytes;
    unsigned rank;
    bool swapped = false;
    struct tensor tensor = {.source = container->file, .dtype = torch_numpy_dtype(array.dtype, &swapped)};
    if (tensor.dtype == NULL) {
        tensor.dtype = dtype_by_name("U8");
        tensor.refusal = "a numpy array of a dtype that is not supported";
    }
    if (!torch_sizes(array.shape, shape, &rank) ||
        !shape_size(tensor.dtype, shape, rank, &n_elements, &n_bytes, NULL) || n_bytes > INT64_MAX)
        return torch_refuse(container, node, error, "a numpy array with an invalid shape");
    tensor.rank = (uint8_t)rank;
    tensor.shape = arena_copy(arena, shape, rank * sizeof *shape);
    if (tensor.refusal == NULL) {
        *ret_stored = (struct torch_stored){NULL, array.data != NULL ? array.data->offset : 0, n_bytes};
        const struct view *elements = array_elements(container, array.data, &tensor, n_elements, n_bytes);
        if (elements == NULL)
            return torch_refuse(container, node, error,
                                "a numpy array whose data do not have the %llu bytes of its shape",
                                (unsigned long long)n_bytes);
        (array.column_major ? column_major_strides : shape_row_major_strides)(shape, rank, strides);
        bool complex = tensor.dtype->kind == DTYPE_COMPLEX;
        struct bits bits = {.component_bytes = (uint8_t)(tensor.dtype->block_bytes / (complex ? 2 : 1)),
                            .swap = swapped};
        const struct view *ordered = view_strided(arena, elements, rank, shape, 0, strides);
        tensor.view = view_bits(arena, ordered, bits);
        if (tensor.length > 0 && !array.column_major && tensor.view == ordered)
            tensor.view = NULL; /* simply stored */
    }
    *ret_tensor = tensor;
    return true;
}

/* Arrays in slices: paddle.save() cuts arrays of more than 2^30 bytes with the pickle protocols 2 and 3, whose strings
 * are shorter than 4 GiB. Source: paddle/framework/io_utils.py, _unpack_saved_dict and _pack_loaded_dict. */

static const char slices_key[] = "UnpackBigParamInfor@@";

struct joining {
    const struct torch_container *container;
    struct tensor *tensors; /* `n` of them, some of them slices */
    size_t n;
    uint32_t *sorted;       /* their indices, in the order of names */
    bool *is_slice;         /* those that have been joined */
    struct tensor **joined; /* of each first slice, the array in its place */
};

struct wanted {
    const struct joining *joining;
    const struct pickle_node *name;
};

static int compare(const struct joining *joining, size_t index, const struct pickle_node *name)
{
    const struct tensor *tensor = &joining->tensors[joining->sorted[index]];
    return text_compare(tensor->name, tensor->name_length, name->text.bytes, name->text.length);
}

static bool comes_before(const void *context, size_t index)
{
    const struct wanted *wanted = context;
    return compare(wanted->joining, index, wanted->name) < 0;
}

/* Returns the index of the slice of that name; `n` if there is none, or if another array has it. */
static size_t find_slice(const struct joining *joining, const struct pickle_node *name)
{
    if (!pickle_is(name, PICKLE_TEXT))
        return joining->n;
    const struct wanted wanted = {joining, name};
    size_t found = search_first(joining->n, comes_before, &wanted);
    bool is_found = found < joining->n && compare(joining, found, name) == 0;
    return is_found && !joining->is_slice[joining->sorted[found]] ? joining->sorted[found] : joining->n;
}

/* Collects the slices as views, and marks them. */
static bool take_slices(const struct joining *joining, const struct pickle_node *names, const struct view **views,
                        uint64_t *ret_elements, struct error *error)
{
    *ret_elements = 0;
    for (uint32_t i = 0; i < pickle_count(names); i++) {
        size_t index = find_slice(joining, pickle_at(names, i));
        if (index == joining->n)
            return torch_refuse(joining->container, names, error, "slice %u of an array is missing", i);
        const struct tensor *slice = &joining->tensors[index];
        if (slice->rank != 1 || slice->shape[0] == 0 || slice->refusal != NULL ||
            (i > 0 && slice->dtype != views[0]->dtype))
            return torch_refuse(joining->container, names, error, "slice %u of an array is not a vector of its dtype",
                                i);
        joining->is_slice[index] = true;
        views[i] = tensor_view(slice, joining->container->checkpoint->arena);
        *ret_elements += slice->shape[0];
    }
    return true;
}

/* Makes an array for the place of its first slice. */
static bool join(const struct joining *joining, const struct pickle_node *name, const struct pickle_node *entry,
                 struct error *error)
{
    struct arena *arena = joining->container->checkpoint->arena;
    const struct pickle_node *names = pickle_get(entry, "slices"), *sizes = pickle_get(entry, "OriginShape");
    uint64_t shape[SHAPE_MAX_RANK], n_elements, n_sliced, n_bytes;
    unsigned rank;
    uint32_t n = pickle_count(names);
    if (!pickle_is(name, PICKLE_TEXT) || name->text.length > TENSOR_MAX_NAME || n == 0 ||
        !torch_sizes(sizes, shape, &rank))
        return torch_refuse(joining->container, name, error,
                            "an array in slices without a name, slices or OriginShape");
    size_t first = find_slice(joining, pickle_at(names, 0));
    const struct view **views = memory_alloc(n * sizeof(struct view *));
    bool good = take_slices(joining, names, views, &n_sliced, error);
    if (good && (!shape_size(views[0]->dtype, shape, rank, &n_elements, &n_bytes, NULL) || n_elements != n_sliced))
        good = torch_refuse(joining->container, name, error, "the slices of an array do not fill its OriginShape");
    if (good) {
        const struct view *view = view_reshape(arena, view_concatenate(arena, views, n, 0), rank, shape);
        struct tensor joined = tensor_of_view(arena_strndup(arena, name->text.bytes, name->text.length), view);
        joined.name_length = (uint32_t)name->text.length;
        joining->joined[first] = arena_copy(arena, &joined, sizeof joined);
    }
    free(views);
    return good;
}

static bool join_all(const struct joining *joining, const struct pickle_node *slices, struct error *error)
{
    for (uint32_t i = 0; i + 1 < slices->items.n; i += 2)
        if (!join(joining, slices->items.nodes[i], slices->items.nodes[i + 1], error))
            return false;
    return true;
}

bool torch_join_slices(const struct torch_container *container, const struct pickle *pickle, size_t first,
                       struct error *error)
{
    const struct pickle_node *slices = pickle_get(pickle->root, slices_key);
    size_t n = container->tensors->n_tensors - first;
    if (!pickle_is(slices, PICKLE_DICT) || slices->items.n == 0)
        return true;
    if (n == 0)
        return torch_refuse(container, slices, error, "arrays in slices that are missing");
    struct arena *scratch = arena_new();
    struct joining joining = {
        .container = container,
        .tensors = tensor_set_edit(container->tensors) + first,
        .n = n,
        .is_slice = arena_array(scratch, n, sizeof *joining.is_slice),
        .joined = arena_array(scratch, n, sizeof *joining.joined),
    };
    joining.sorted = tensors_by_name(joining.tensors, n);
    bool good = join_all(&joining, slices, error);
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++)
        if (joining.joined[i] != NULL)
            joining.tensors[n_kept++] = *joining.joined[i];
        else if (!joining.is_slice[i])
            joining.tensors[n_kept++] = joining.tensors[i];
    container->tensors->n_tensors = first + n_kept;
    free(joining.sorted);
    arena_free(scratch);
    return good;
}
