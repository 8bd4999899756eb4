/* Flax checkpoints: trees of arrays in MessagePack, as flax.serialization writes them.
 *
 * The file is one map. An extension of type 1 is an array, one of type 3 a numpy scalar: MessagePack again, [shape,
 * name of the dtype, elements]. A map with the key __msgpack_chunked_array__ is an array in pieces, because a
 * MessagePack string has at most 4 GiB. A tensor has the keys on the way to it as its name, joined by '.'; tensors are
 * in the order of the file. Numbers and texts become metadata, other values are left out.
 *
 * Stricter than flax, which takes the last of two equal keys: two tensors of one name are refused. So are pieces of
 * different dtypes. Source: flax/serialization.py. */
#include "base/arena.h"
#include "base/buffer.h"
#include "formats/checkpoint_builder.h"
#include "formats/flax/msgpack.h"
#include "formats/format.h"
#include "formats/shape.h"
#include "text/json_write.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXTENSION_ARRAY = 1, EXTENSION_SCALAR = 3 };

enum {
    MAX_DEPTH = 64,
    MAX_KEY = 4096,
    MAX_DTYPE = 32,
    MAX_METADATA = 256,
    MAX_METADATA_TEXT = 1024,
    LEAST_PIECE = 8, /* bytes of a piece in a map: a key, and an extension of an array of three */
};

/* Names may take so many bytes for each byte of the file, and a constant: keys are shared, so a short file could have
 * very long names. */
enum { NAMES_RATIO = 16, NAMES_CONSTANT = 1024 * 1024 };

static const char chunked_key[] = "__msgpack_chunked_array__";

/* numpy's names. ml_dtypes keeps an element of 2 or 4 bits in a byte. */
static const struct {
    const char *numpy, *dtype;
} dtype_names[] = {
    {"float32", "F32"},
    {"float64", "F64"},
    {"float16", "F16"},
    {"bfloat16", "BF16"},
    {"int8", "I8"},
    {"int16", "I16"},
    {"int32", "I32"},
    {"int64", "I64"},
    {"uint8", "U8"},
    {"uint16", "U16"},
    {"uint32", "U32"},
    {"uint64", "U64"},
    {"bool", "BOOL"},
    {"complex64", "C64"},
    {"complex128", "C128"},
    {"float8_e4m3fn", "F8_E4M3"},
    {"float8_e5m2", "F8_E5M2"},
    {"float8_e4m3fnuz", "F8_E4M3FNUZ"},
    {"float8_e5m2fnuz", "F8_E5M2FNUZ"},
    {"float8_e8m0fnu", "F8_E8M0"},
    {"int4", "I8"},
    {"uint4", "U8"},
    {"int2", "I8"},
    {"uint2", "U8"},
};

/* An array in the file. */
struct array {
    const struct dtype *dtype;
    unsigned rank;
    uint64_t shape[SHAPE_MAX_RANK], n_elements, n_bytes, offset;
};

/* A map or an array whose values are being read. */
struct level {
    bool is_map;
    uint64_t n_left, index;
    size_t path_length; /* of the path to it */
};

struct reader {
    struct checkpoint *checkpoint;
    struct source *file;
    struct tensor_set *tensors;
    struct msgpack input;
    struct window window;
    struct buffer path;
    struct level levels[MAX_DEPTH];
    unsigned depth, n_metadata;
    uint64_t names_left; /* bytes */
};

static bool refuse(const struct reader *reader, uint64_t offset, const char *reason, struct error *error)
{
    return msgpack_refuse(&reader->input, offset, reason, error);
}

/* Reads the bytes of a text, with a NUL at the end; fails above the capacity. */
static bool read_bytes(struct reader *reader, const struct msgpack_value *value, char *out, size_t capacity,
                       struct error *error)
{
    if (value->number >= capacity)
        return refuse(reader, value->offset, "a text is too long", error);
    out[value->number] = '\0';
    return window_read(&reader->window, value->offset, (size_t)value->number, out, error);
}

/* Arrays. */

static const struct dtype *find_dtype(const char *name)
{
    for (size_t i = 0; i < sizeof dtype_names / sizeof *dtype_names; i++)
        if (strcmp(dtype_names[i].numpy, name) == 0)
            return dtype_by_name(dtype_names[i].dtype);
    return NULL;
}

static bool read_shape(struct reader *reader, struct msgpack *from, struct array *array, struct error *error)
{
    struct msgpack_value value;
    uint64_t start = from->at;
    if (!msgpack_next(from, &value, error))
        return false;
    if (value.kind != MSGPACK_ARRAY || value.number > SHAPE_MAX_RANK)
        return refuse(reader, start, "an array whose shape is not a list of at most 64 numbers", error);
    array->rank = (unsigned)value.number;
    for (unsigned i = 0; i < array->rank; i++) {
        if (!msgpack_next(from, &value, error))
            return false;
        if (value.kind != MSGPACK_UNSIGNED)
            return refuse(reader, start, "an array whose shape has an element that is not a number >= 0", error);
        array->shape[i] = value.number;
    }
    return true;
}

static bool read_dtype(struct reader *reader, struct msgpack *from, struct array *array, struct error *error)
{
    char name[MAX_DTYPE], reason[MAX_DTYPE + 64];
    struct msgpack_value value;
    uint64_t start = from->at;
    if (!msgpack_next(from, &value, error))
        return false;
    if (value.kind != MSGPACK_TEXT && value.kind != MSGPACK_BINARY)
        return refuse(reader, start, "an array whose dtype is not a text", error);
    if (!read_bytes(reader, &value, name, sizeof name, error))
        return false;
    array->dtype = find_dtype(name);
    snprintf(reason, sizeof reason, "an array of the unknown dtype '%s'", name);
    return array->dtype != NULL || refuse(reader, start, reason, error);
}

static bool read_elements(struct reader *reader, struct msgpack *from, struct array *array, struct error *error)
{
    struct msgpack_value value;
    uint64_t start = from->at;
    char reason[128];
    if (!msgpack_next(from, &value, error))
        return false;
    if (value.kind != MSGPACK_BINARY && value.kind != MSGPACK_TEXT)
        return refuse(reader, start, "an array whose elements are not bytes", error);
    if (!shape_size(array->dtype, array->shape, array->rank, &array->n_elements, &array->n_bytes, NULL))
        return refuse(reader, start, "an array whose size overflows", error);
    snprintf(reason, sizeof reason, "an array with %" PRIu64 " bytes of elements, but its shape needs %" PRIu64,
             value.number, array->n_bytes);
    if (value.number != array->n_bytes)
        return refuse(reader, start, reason, error);
    array->offset = value.offset;
    return true;
}

/* Reads the content of an extension. */
static bool read_array(struct reader *reader, const struct msgpack_value *extension, struct array *array,
                       struct error *error)
{
    struct msgpack from = reader->input;
    struct msgpack_value list;
    from.at = extension->offset;
    from.end = extension->offset + extension->number;
    if (!msgpack_next(&from, &list, error))
        return false;
    if (list.kind != MSGPACK_ARRAY || list.number != 3)
        return refuse(reader, extension->offset, "an array that is not a list of shape, dtype and elements", error);
    return read_shape(reader, &from, array, error) && read_dtype(reader, &from, array, error) &&
           read_elements(reader, &from, array, error) &&
           (from.at == from.end || refuse(reader, from.at, "an array with bytes after its elements", error));
}

/* Returns a tensor of the current path, without values. Fails if names take too many bytes. */
static bool begin_tensor(struct reader *reader, struct tensor *tensor, struct error *error)
{
    size_t length = reader->path.length;
    if (length > TENSOR_MAX_NAME || length > reader->names_left)
        return refuse(reader, reader->input.at, "the keys on the way to an array are too long", error);
    if (reader->tensors->n_tensors == TENSOR_SET_MAX)
        return refuse(reader, reader->input.at, "too many arrays", error);
    reader->names_left -= length;
    *tensor = (struct tensor){.name = arena_strndup(reader->checkpoint->arena, (char *)reader->path.bytes, length),
                              .name_length = (uint32_t)length};
    return true;
}

static bool add_array(struct reader *reader, const struct msgpack_value *extension, struct error *error)
{
    struct array array;
    struct tensor tensor;
    if (!read_array(reader, extension, &array, error) || !begin_tensor(reader, &tensor, error))
        return false;
    tensor.dtype = array.dtype;
    tensor.rank = (uint8_t)array.rank;
    tensor.shape = arena_copy(reader->checkpoint->arena, array.shape, array.rank * sizeof *array.shape);
    tensor.source = reader->file;
    tensor.offset = array.offset;
    tensor.length = array.n_bytes;
    tensor_set_add(reader->tensors, &tensor);
    return true;
}

/* Arrays in pieces. */

/* The pieces, or the dimensions, of an array in pieces: values under the keys "0", "1" ... in any order. */
struct numbered {
    uint64_t count, n_found;
    uint64_t *numbers;         /* of the shape */
    const struct view **views; /* of the pieces */
};

struct pieces {
    bool is_marked;
    struct numbered shape, chunks;
    const struct dtype *dtype;
    uint64_t n_elements;
};

/* Reads the key of a numbered value, which must be below the count and new. */
static bool read_index(struct reader *reader, uint64_t count, uint64_t *ret_index, struct error *error)
{
    char text[24], expected[24];
    struct msgpack_value key;
    uint64_t start = reader->input.at;
    if (!msgpack_next(&reader->input, &key, error))
        return false;
    if (key.kind != MSGPACK_TEXT || key.number >= sizeof text)
        return refuse(reader, start, "an array in pieces with a key that is not a number", error);
    if (!read_bytes(reader, &key, text, sizeof text, error))
        return false;
    *ret_index = strtoull(text, NULL, 10);
    snprintf(expected, sizeof expected, "%" PRIu64, *ret_index);
    return (*ret_index < count && strcmp(text, expected) == 0) ||
           refuse(reader, start, "an array in pieces whose keys are not 0, 1 and so on", error);
}

static bool read_numbered_count(struct reader *reader, uint64_t most, struct numbered *numbered, struct error *error)
{
    struct msgpack_value map;
    uint64_t start = reader->input.at;
    if (!msgpack_next(&reader->input, &map, error))
        return false;
    numbered->count = map.number;
    return (map.kind == MSGPACK_MAP && map.number <= most) ||
           refuse(reader, start, "an array in pieces whose shape or chunks are not a map, or too many", error);
}

static bool read_dimensions(struct reader *reader, struct pieces *pieces, struct error *error)
{
    struct numbered *shape = &pieces->shape;
    bool seen[SHAPE_MAX_RANK] = {false};
    if (!read_numbered_count(reader, SHAPE_MAX_RANK, shape, error))
        return false;
    shape->numbers = arena_array(reader->checkpoint->arena, shape->count, sizeof *shape->numbers);
    for (uint64_t i = 0, index; i < shape->count; i++) {
        struct msgpack_value value;
        uint64_t start = reader->input.at;
        if (!read_index(reader, shape->count, &index, error) || !msgpack_next(&reader->input, &value, error))
            return false;
        if (value.kind != MSGPACK_UNSIGNED || seen[index])
            return refuse(reader, start, "an array in pieces whose shape is not numbers >= 0", error);
        shape->numbers[index] = value.number;
        seen[index] = true;
    }
    return true;
}

static bool read_piece(struct reader *reader, struct pieces *pieces, struct error *error)
{
    struct array array;
    struct msgpack_value value;
    uint64_t start = reader->input.at, index;
    if (!read_index(reader, pieces->chunks.count, &index, error) || !msgpack_next(&reader->input, &value, error))
        return false;
    if (value.kind != MSGPACK_EXTENSION || value.type != EXTENSION_ARRAY || pieces->chunks.views[index] != NULL)
        return refuse(reader, start, "an array in pieces with a piece that is not an array, or two of one key", error);
    if (!read_array(reader, &value, &array, error))
        return false;
    if (pieces->dtype != NULL && pieces->dtype != array.dtype)
        return refuse(reader, start, "an array in pieces of different dtypes", error);
    pieces->dtype = array.dtype;
    pieces->n_elements += array.n_elements; /* at most the bytes of the file */
    pieces->chunks.views[index] =
        view_of_source(reader->checkpoint->arena, reader->file, array.offset, array.dtype, 1, &array.n_elements);
    return true;
}

static bool read_chunks(struct reader *reader, struct pieces *pieces, struct error *error)
{
    struct numbered *chunks = &pieces->chunks;
    uint64_t most = (reader->input.end - reader->input.at) / LEAST_PIECE;
    if (!read_numbered_count(reader, most, chunks, error))
        return false;
    chunks->views = arena_array(reader->checkpoint->arena, chunks->count, sizeof *chunks->views);
    for (uint64_t i = 0; i < chunks->count; i++)
        if (!read_piece(reader, pieces, error))
            return false;
    return true;
}

/* Reads one of the three entries; *ret_known is false if the map is no array in pieces. */
static bool read_pieces_entry(struct reader *reader, struct pieces *pieces, bool *ret_known, struct error *error)
{
    char text[sizeof chunked_key];
    struct msgpack_value key, marker;
    if (!msgpack_next(&reader->input, &key, error))
        return false;
    *ret_known = key.kind == MSGPACK_TEXT && key.number < sizeof text;
    if (!*ret_known)
        return true;
    if (!read_bytes(reader, &key, text, sizeof text, error))
        return false;
    if (strcmp(text, "shape") == 0 && pieces->shape.numbers == NULL)
        return read_dimensions(reader, pieces, error);
    if (strcmp(text, "chunks") == 0 && pieces->chunks.views == NULL)
        return read_chunks(reader, pieces, error);
    *ret_known = strcmp(text, chunked_key) == 0 && !pieces->is_marked;
    pieces->is_marked = true;
    return !*ret_known || msgpack_next(&reader->input, &marker, error);
}

static bool add_pieces(struct reader *reader, const struct pieces *pieces, uint64_t start, struct error *error)
{
    struct arena *arena = reader->checkpoint->arena;
    struct tensor tensor;
    uint64_t n_elements, n_bytes;
    char reason[128];
    if (pieces->dtype == NULL)
        return refuse(reader, start, "an array in pieces without a piece", error);
    if (!shape_size(pieces->dtype, pieces->shape.numbers, (unsigned)pieces->shape.count, &n_elements, &n_bytes, NULL))
        return refuse(reader, start, "an array in pieces whose size overflows", error);
    snprintf(reason, sizeof reason, "an array of %" PRIu64 " elements, but its pieces have %" PRIu64, n_elements,
             pieces->n_elements);
    if (n_elements != pieces->n_elements)
        return refuse(reader, start, reason, error);
    if (!begin_tensor(reader, &tensor, error))
        return false;
    const struct view *flat = view_concatenate(arena, pieces->chunks.views, (size_t)pieces->chunks.count, 0);
    tensor.view = view_reshape(arena, flat, (unsigned)pieces->shape.count, pieces->shape.numbers);
    tensor.dtype = pieces->dtype;
    tensor.rank = (uint8_t)pieces->shape.count;
    tensor.shape = tensor.view->shape;
    tensor_set_add(reader->tensors, &tensor);
    return true;
}

/* Skips a value with all that is in it. */
static bool skip_value(struct msgpack *from, struct error *error)
{
    struct msgpack_value value;
    for (uint64_t n_left = 1; n_left > 0; n_left--) {
        if (!msgpack_next(from, &value, error))
            return false;
        if (value.kind == MSGPACK_MAP || value.kind == MSGPACK_ARRAY)
            n_left += value.kind == MSGPACK_MAP ? 2 * value.number : value.number;
    }
    return true;
}

/* Reports whether a map of three entries, which follow, is an array in pieces. Looks no further than the first key that
 * such an array does not have. */
static bool look_for_pieces(const struct reader *reader, bool *ret_found, struct error *error)
{
    struct msgpack ahead = reader->input;
    struct msgpack_value key;
    char text[sizeof chunked_key];
    *ret_found = false;
    for (int i = 0; i < 3; i++) {
        if (!msgpack_next(&ahead, &key, error))
            return false;
        if (key.kind != MSGPACK_TEXT || key.number >= sizeof text)
            return true;
        if (!window_read(ahead.window, key.offset, (size_t)key.number, text, error))
            return false;
        text[key.number] = '\0';
        *ret_found = strcmp(text, chunked_key) == 0;
        if (*ret_found || (strcmp(text, "shape") != 0 && strcmp(text, "chunks") != 0))
            return true;
        if (!skip_value(&ahead, error))
            return false;
    }
    return true;
}

/* Reads an array in pieces, after the beginning of its map. */
static bool read_pieces(struct reader *reader, struct error *error)
{
    struct pieces pieces = {0};
    uint64_t start = reader->input.at;
    bool known = true;
    for (int i = 0; i < 3; i++) {
        if (!read_pieces_entry(reader, &pieces, &known, error))
            return false;
        if (!known)
            return refuse(reader, start, "an array in pieces with other keys than shape and chunks", error);
    }
    return add_pieces(reader, &pieces, start, error);
}

/* The tree. */

/* Adds numbers and texts, such as the step of a training, to the metadata. */
static bool add_metadata(struct reader *reader, const struct msgpack_value *value, struct error *error)
{
    char text[MAX_METADATA_TEXT + 1];
    bool is_known = value->kind <= MSGPACK_TEXT && value->kind != MSGPACK_NIL;
    if (!is_known || (value->kind == MSGPACK_TEXT && value->number > MAX_METADATA_TEXT) ||
        memchr(reader->path.bytes, '\0', reader->path.length) != NULL || reader->n_metadata == MAX_METADATA)
        return true;
    if (value->kind == MSGPACK_TEXT && !read_bytes(reader, value, text, sizeof text, error))
        return false;
    if (value->kind == MSGPACK_FLOAT)
        json_f64_text(value->real, text);
    else if (value->kind == MSGPACK_UNSIGNED)
        snprintf(text, sizeof text, "%" PRIu64, value->number);
    else if (value->kind == MSGPACK_NEGATIVE)
        snprintf(text, sizeof text, "%" PRId64, (int64_t)value->number);
    else if (value->kind != MSGPACK_TEXT)
        strcpy(text, value->kind == MSGPACK_TRUE ? "true" : "false");
    char *key = memory_strndup((const char *)reader->path.bytes, reader->path.length);
    checkpoint_add_metadata(reader->checkpoint, key, text);
    reader->n_metadata++;
    free(key);
    return true;
}

static bool enter(struct reader *reader, const struct msgpack_value *value, struct error *error)
{
    bool is_map = value->kind == MSGPACK_MAP, is_in_pieces = false;
    if (is_map && value->number == 3 && !look_for_pieces(reader, &is_in_pieces, error))
        return false;
    if (is_in_pieces)
        return read_pieces(reader, error);
    if (reader->depth == MAX_DEPTH)
        return refuse(reader, reader->input.at, "maps are nested more than 64 deep", error);
    reader->levels[reader->depth++] =
        (struct level){.is_map = is_map, .n_left = value->number, .path_length = reader->path.length};
    return true;
}

/* Appends the next key of a map, or the index in an array, to the path. */
static bool append_key(struct reader *reader, struct level *level, struct error *error)
{
    char text[MAX_KEY + 1];
    struct msgpack_value key = {.kind = MSGPACK_UNSIGNED, .number = level->index++};
    uint64_t start = reader->input.at;
    reader->path.length = level->path_length;
    if (reader->depth > 1)
        buffer_append_text(&reader->path, ".");
    if (level->is_map && !msgpack_next(&reader->input, &key, error))
        return false;
    if (key.kind == MSGPACK_UNSIGNED) {
        buffer_printf(&reader->path, "%" PRIu64, key.number);
        return true;
    }
    if (key.kind != MSGPACK_TEXT)
        return refuse(reader, start, "a key that is not a text", error);
    if (!read_bytes(reader, &key, text, sizeof text, error))
        return false;
    buffer_append(&reader->path, text, (size_t)key.number);
    return true;
}

static bool read_value(struct reader *reader, struct error *error)
{
    struct msgpack_value value;
    if (!msgpack_next(&reader->input, &value, error))
        return false;
    if (value.kind == MSGPACK_MAP || value.kind == MSGPACK_ARRAY)
        return enter(reader, &value, error);
    if (value.kind == MSGPACK_EXTENSION && (value.type == EXTENSION_ARRAY || value.type == EXTENSION_SCALAR))
        return add_array(reader, &value, error);
    return add_metadata(reader, &value, error);
}

static bool read_tree(struct reader *reader, struct error *error)
{
    struct msgpack_value root;
    if (!msgpack_next(&reader->input, &root, error))
        return false;
    if (root.kind != MSGPACK_MAP)
        return refuse(reader, 0, "not a Flax checkpoint: it does not begin with a map", error);
    if (!enter(reader, &root, error))
        return false;
    while (reader->depth > 0) {
        struct level *level = &reader->levels[reader->depth - 1];
        if (level->n_left == 0) {
            reader->depth--;
            continue;
        }
        level->n_left--;
        if (!append_key(reader, level, error) || !read_value(reader, error))
            return false;
    }
    return true;
}

static bool check_end(const struct reader *reader, size_t n_before, const struct open_options *options,
                      struct error *error)
{
    uint64_t n_left = reader->input.end - reader->input.at;
    if (reader->tensors->n_tensors == n_before)
        return error_set(error, "%s: a MessagePack file without arrays", reader->input.name);
    return n_left == 0 || options->allow_trailing ||
           error_set(error, "%s: %" PRIu64 " extra bytes after the last array; -o allow_trailing ignores them",
                     reader->input.name, n_left);
}

static bool flax_read_file(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                           const struct open_options *options, struct error *error)
{
    struct reader *reader = memory_alloc(sizeof *reader);
    size_t n_before = tensors->n_tensors;
    *reader = (struct reader){
        .checkpoint = checkpoint,
        .file = file,
        .tensors = tensors,
        .input = {.name = source_name(file), .end = source_size(file)},
        .window = {.source = file},
        .names_left = NAMES_CONSTANT + NAMES_RATIO * source_size(file),
    };
    reader->input.window = &reader->window;
    buffer_append_text(&reader->path, " "); /* an empty path has bytes, too */
    reader->path.length = 0;
    bool good =
        source_check_fetched(file, error) && read_tree(reader, error) && check_end(reader, n_before, options, error);
    buffer_free(&reader->path);
    free(reader);
    return good;
}

/* Reports whether the file begins with a map, and its first key with a letter, as no other format that begins with
 * these bytes does. */
static bool begins_with_map(const unsigned char *head, size_t length)
{
    size_t key = length > 0 && head[0] == 0xde ? 3 : length > 0 && head[0] == 0xdf ? 5 : 1;
    if (length < key + 3 || !((head[0] > 0x80 && head[0] < 0x90) || key > 1))
        return false;
    size_t text = head[key] >= 0xa1 && head[key] < 0xc0 ? key + 1 : head[key] == 0xd9 ? key + 2 : 0;
    return text > 0 && (isalnum(head[text]) || head[text] == '_');
}

static enum probe flax_probe(const struct input *input)
{
    if (input->file == NULL)
        return PROBE_NO;
    if (format_extension(&flax_format, input->file_name))
        return PROBE_SURE;
    return begins_with_map(input->head, input->head_length) ? PROBE_MAYBE : PROBE_NO;
}

static const struct extension extensions[] = {{".msgpack"}, {0}};

const struct format flax_format = {
    .name = "flax",
    .extensions = extensions,
    .summary = "Flax checkpoints: .msgpack",
    .probe = flax_probe,
    .read_file = flax_read_file,
};
