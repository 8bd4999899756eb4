/* Paddle's weights: pickles, and the tensors of static models. */
#include "base/checked.h"
#include "base/text.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/paddle/static.h"
#include "formats/protobuf.h"
#include "formats/shape.h"
#include "formats/window.h"
#include "text/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Static models. */

enum {
    MAX_PROGRAM = 512 * 1024 * 1024, /* some kilobytes for each operation */
    MAX_NAME = 4096,
    MAX_DESCRIPTION = 1024, /* a dtype, and SHAPE_MAX_RANK dimensions of at most 11 bytes */
    MAX_LEVELS = 16,        /* of detail; weights have none */
};

/* Fields and values of the protocol buffers. */
enum { PROGRAM_BLOCKS = 1, BLOCK_VARS = 3, VAR_NAME = 1, VAR_TYPE = 2, VAR_PERSISTABLE = 3, TYPE_KIND = 1 };
enum { DESCRIPTION_TYPE = 1, DESCRIPTION_DIMS = 2, KIND_TENSOR = 7 };

static const char *const data_types[] = {
    [0] = "BOOL", [1] = "I16", [2] = "I32", [3] = "I64",   [4] = "F16",  [5] = "F32",
    [6] = "F64",  [20] = "U8", [21] = "I8", [22] = "BF16", [23] = "C64", [24] = "C128",
};

struct reader {
    struct checkpoint *checkpoint;
    struct arena *scratch;
    struct file_cursor in;
    char **names; /* in the scratch arena */
    size_t n_names;
};

static bool refuse(const struct reader *reader, uint64_t offset, const char *reason, struct error *error)
{
    return error_set(error, "%s: offset %" PRIu64 ": %s", source_name(reader->in.file), offset, reason);
}

/* Names. */

static void add_name(struct reader *reader, const char *name)
{
    reader->names = memory_grow(reader->names, reader->n_names, sizeof *reader->names);
    reader->names[reader->n_names++] = arena_strdup(reader->scratch, name);
}

static bool add_parameters(struct reader *reader, const struct json *block, const char *file, struct error *error)
{
    const struct json *operations = json_get(block, "ops");
    for (const struct json *one = json_first(operations); one != NULL; one = json_next(one)) {
        size_t length;
        if (!json_string_is(json_get(one, "#"), "p"))
            continue;
        const char *name = json_string(json_at(json_get(one, "A"), 3), &length);
        if (name == NULL || length == 0 || length > MAX_NAME || strlen(name) != length)
            return error_set(error, "%s: parameter %zu has no name", file, reader->n_names);
        add_name(reader, name);
    }
    return true;
}

/* Reads the parameters of a PIR program, which are all in the first block. */
static bool read_json_names(struct reader *reader, const struct source *program, struct error *error)
{
    size_t length;
    char *text = source_read_text(program, MAX_PROGRAM, &length, error);
    struct json_document *document = text != NULL ? json_parse(text, length, error) : NULL;
    free(text);
    if (document == NULL)
        return text == NULL ? false : error_prefix(error, "%s", source_name(program));
    const struct json *region = json_first(json_get(json_get(json_root(document), "program"), "regions"));
    bool good = add_parameters(reader, json_first(json_get(region, "blocks")), source_name(program), error);
    json_free(document);
    return good;
}

/* Reports whether the type of a variable is a tensor's. */
static bool read_is_tensor(struct protobuf type, bool *ret_is_tensor, struct error *error)
{
    struct protobuf_field field;
    bool more;
    while (protobuf_next(&type, &field, &more, error) && more)
        if (field.number == TYPE_KIND && field.wire == PROTOBUF_VARINT)
            *ret_is_tensor = field.value == KIND_TENSOR;
    return !more;
}

static bool read_variable(struct reader *reader, struct protobuf variable, struct error *error)
{
    struct protobuf_field field, name = {0};
    bool more, is_tensor = false, is_persistable = false;
    while (protobuf_next(&variable, &field, &more, error) && more) {
        if (field.number == VAR_NAME && field.wire == PROTOBUF_BYTES)
            name = field;
        else if (field.number == VAR_PERSISTABLE && field.wire == PROTOBUF_VARINT)
            is_persistable = field.value != 0;
        else if (field.number == VAR_TYPE && field.wire == PROTOBUF_BYTES &&
                 !read_is_tensor(protobuf_inner(&variable, &field), &is_tensor, error))
            return false;
    }
    if (more || !is_tensor || !is_persistable)
        return !more;
    char *text = protobuf_text(&variable, &name, MAX_NAME, error);
    if (text == NULL)
        return false;
    add_name(reader, text);
    free(text);
    return true;
}

static bool read_block(struct reader *reader, struct protobuf block, struct error *error)
{
    struct protobuf_field field;
    bool more;
    while (protobuf_next(&block, &field, &more, error) && more)
        if (field.number == BLOCK_VARS && field.wire == PROTOBUF_BYTES &&
            !read_variable(reader, protobuf_inner(&block, &field), error))
            return false;
    return !more;
}

/* Reads the persistable variables of a ProgramDesc. */
static bool read_protobuf_names(struct reader *reader, const struct source *program, struct error *error)
{
    struct window *window = memory_alloc(sizeof *window);
    window->source = program;
    window->length = 0;
    struct protobuf message = {window, source_name(program), 0, source_size(program)};
    struct protobuf_field field;
    bool more = true, good = true;
    while (good && protobuf_next(&message, &field, &more, error) && more)
        if (field.number == PROGRAM_BLOCKS && field.wire == PROTOBUF_BYTES)
            good = read_block(reader, protobuf_inner(&message, &field), error);
    free(window);
    return good && !more;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool sort_names(const struct reader *reader, const char *program, struct error *error)
{
    if (reader->n_names == 0)
        return error_set(error, "%s: a program without parameters", program);
    qsort(reader->names, reader->n_names, sizeof *reader->names, compare_names);
    for (size_t i = 1; i < reader->n_names; i++)
        if (strcmp(reader->names[i - 1], reader->names[i]) == 0)
            return error_set(error, "%s: two parameters named %.200s", program, reader->names[i]);
    return true;
}

/* Tensors. */

/* Skips the version, and the levels of detail, which say nothing of the elements. */
static bool skip_levels(struct reader *reader, struct error *error)
{
    uint64_t version = 0, n_levels = 0, size = 0, start = reader->in.at;
    if (!file_cursor_number(&reader->in, 4, &version) || !file_cursor_number(&reader->in, 8, &n_levels))
        return false;
    if (version != 0 || n_levels > MAX_LEVELS)
        return refuse(reader, start, "not the beginning of a tensor", error);
    for (uint64_t i = 0; i < n_levels; i++) {
        if (!file_cursor_number(&reader->in, 8, &size))
            return false;
        if (!file_cursor_skip(&reader->in, size))
            return false;
    }
    return true;
}

static bool add_dimension(const struct reader *reader, uint64_t *shape, unsigned *rank, uint64_t size,
                          struct error *error)
{
    if (*rank == SHAPE_MAX_RANK || size > INT64_MAX)
        return refuse(reader, reader->in.at, "a tensor with too many or negative dimensions", error);
    shape[(*rank)++] = size;
    return true;
}

static bool read_dimensions(const struct reader *reader, const struct protobuf *message,
                            const struct protobuf_field *field, uint64_t *shape, unsigned *rank, struct error *error)
{
    if (field->wire == PROTOBUF_VARINT)
        return add_dimension(reader, shape, rank, field->value, error);
    if (field->wire != PROTOBUF_BYTES)
        return true;
    struct protobuf packed = protobuf_inner(message, field);
    uint64_t size;
    while (packed.at < packed.end)
        if (!protobuf_varint(&packed, &size, error) || !add_dimension(reader, shape, rank, size, error))
            return false;
    return true;
}

/* Reads the dtype and the shape. */
static bool read_description(struct reader *reader, struct tensor *tensor, struct error *error)
{
    uint64_t version, size, start = reader->in.at, type = UINT64_MAX, shape[SHAPE_MAX_RANK];
    unsigned rank = 0;
    if (!file_cursor_number(&reader->in, 4, &version) || !file_cursor_number(&reader->in, 4, &size))
        return false;
    if (version != 0 || size > MAX_DESCRIPTION || size > reader->in.end - reader->in.at)
        return refuse(reader, start, "not the description of a tensor", error);
    struct protobuf message = {reader->in.window, source_name(reader->in.file), reader->in.at, reader->in.at + size};
    struct protobuf_field field;
    bool more;
    while (protobuf_next(&message, &field, &more, error) && more) {
        if (field.number == DESCRIPTION_TYPE && field.wire == PROTOBUF_VARINT)
            type = field.value;
        else if (field.number == DESCRIPTION_DIMS && !read_dimensions(reader, &message, &field, shape, &rank, error))
            return false;
    }
    if (more)
        return false;
    if (type >= sizeof data_types / sizeof *data_types || data_types[type] == NULL)
        return refuse(reader, start, "a tensor of an unknown dtype", error);
    reader->in.at += size;
    tensor->dtype = dtype_by_name(data_types[type]);
    tensor->rank = (uint8_t)rank;
    tensor->shape = arena_copy(reader->checkpoint->arena, shape, rank * sizeof *shape);
    return true;
}

static bool read_tensor(struct reader *reader, const char *name, struct error *error)
{
    struct tensor tensor = {.name = arena_strdup(reader->checkpoint->arena, name),
                            .name_length = (uint32_t)strlen(name),
                            .source = reader->in.file};
    uint64_t n_elements;
    if (!skip_levels(reader, error) || !read_description(reader, &tensor, error))
        return false;
    if (!shape_size(tensor.dtype, tensor.shape, tensor.rank, &n_elements, &tensor.length, NULL))
        return refuse(reader, reader->in.at, "a tensor whose size in bytes overflows", error);
    if (tensor.length > reader->in.end - reader->in.at)
        return refuse(reader, reader->in.at, "truncated: a tensor has more bytes than are left", error);
    tensor.offset = reader->in.at;
    reader->in.at += tensor.length;
    tensor_set_add(reader->checkpoint->unsealed, &tensor);
    return true;
}

static bool read_tensors(struct reader *reader, bool allow_trailing, struct error *error)
{
    for (size_t i = 0; i < reader->n_names; i++)
        if (!read_tensor(reader, reader->names[i], error))
            return error_prefix(error, "%.200s", reader->names[i]);
    if (reader->in.at < reader->in.end && !allow_trailing)
        return refuse(reader, reader->in.at, "more bytes than the program's parameters take", error);
    return true;
}

bool paddle_static_read(struct checkpoint *checkpoint, struct source *file, const struct source *program, bool is_json,
                        bool allow_trailing, struct error *error)
{
    struct reader reader = {
        .checkpoint = checkpoint,
        .in = file_cursor_begin(file, 0, NULL, error),
        .scratch = arena_new(),
    };
    bool good = (is_json ? read_json_names : read_protobuf_names)(&reader, program, error) &&
                sort_names(&reader, source_name(program), error) && read_tensors(&reader, allow_trailing, error);
    free(reader.names);
    file_cursor_end(&reader.in);
    arena_free(reader.scratch);
    return good;
}

/* Paddle's static models: inference.pdiparams, whose tensors have no names, beside inference.json or .pdmodel, which
 * has them; or __params__ beside __model__. The program itself is not shown.
 *
 * Files of paddle.save() are pickles: formats/torch. */

/* The endings of a file of tensors, and of the programs that may lie beside it. */
static const struct pair {
    const char *tensors, *program;
    bool is_json;
} pairs[] = {
    {".pdiparams", ".json", true},
    {".pdiparams", ".pdmodel", false},
    {"__params__", "__model__", false},
};
enum { N_PAIRS = sizeof pairs / sizeof *pairs };

/* Returns the only file of tensors in a directory; NULL: none, or several. */
static const char *find_tensors(const struct input *input)
{
    const char *found = NULL;
    for (size_t i = 0; i < input->list.count; i++) {
        const char *name = input->list.entries[i].name;
        if (!text_ends_with(name, pairs[0].tensors) && strcmp(name, pairs[N_PAIRS - 1].tensors) != 0)
            continue;
        if (found != NULL)
            return NULL;
        found = name;
    }
    return found;
}

/* Returns the pair of a file of tensors whose program is beside it; *ret_program is the program's name. */
static const struct pair *find_program(const struct input *input, struct arena *arena, const char *file,
                                       const char **ret_program)
{
    for (const struct pair *pair = pairs; pair < pairs + N_PAIRS; pair++) {
        if (!text_ends_with(file, pair->tensors))
            continue;
        int stem = (int)(strlen(file) - strlen(pair->tensors));
        *ret_program = arena_printf(arena, "%.*s%s", stem, file, pair->program);
        if (input_has(input, *ret_program))
            return pair;
    }
    return NULL;
}

static bool paddle_open(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                        struct error *error)
{
    const char *name = input->file_name != NULL ? input->file_name : find_tensors(input), *program_name;
    struct source *file = location_source(input->location, name, error);
    if (file == NULL)
        return false;
    checkpoint_add_source(checkpoint, file);
    const struct pair *pair = find_program(input, checkpoint->arena, name, &program_name);
    if (pair == NULL)
        return error_set(error, "%s: the program that has its tensors' names, .json or .pdmodel, is not beside it",
                         name);
    struct source *program = location_source(input->location, program_name, error);
    if (program == NULL)
        return false;
    checkpoint_add_guide(checkpoint, program);
    if (!paddle_static_read(checkpoint, file, program, pair->is_json, options->allow_trailing, error))
        return false;
    format_add_side_files(checkpoint, input);
    return true;
}

static enum probe probe(const struct input *input)
{
    if (input->location == NULL)
        return PROBE_NO;
    if (input->file == NULL)
        return find_tensors(input) != NULL ? PROBE_LIKELY : PROBE_NO;
    return text_ends_with(input->file_name, pairs[0].tensors) ||
                   strcmp(input->file_name, pairs[N_PAIRS - 1].tensors) == 0
               ? PROBE_SURE
               : PROBE_NO;
}

static const struct extension extensions[] = {{".pdiparams"}, {0}};

const struct format paddle_format = {
    .name = "paddle",
    .extensions = extensions,
    .summary = "Paddle's static models: .pdiparams beside .json or .pdmodel",
    .probe = probe,
    .open = paddle_open,
};
