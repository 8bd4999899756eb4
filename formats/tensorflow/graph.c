/* Frozen graphs of TensorFlow: the constants of a GraphDef, in a .pb file; and those in the graph of a SavedModel.
 *
 * Each node whose operator is Const is a tensor by the node's name, after FUNCTION/ if a function has it, mapped where
 * its tensor_content lies. Typed values are decoded when the file is read; if there are fewer than elements, the last
 * one is repeated, however many that are, and without any all are zeros. Texts are listed without values. Source:
 * saved_model.proto, meta_graph.proto, graph.proto, function.proto, node_def.proto, attr_value.proto and tensor.proto
 * of TensorFlow; Tensor::FromProto(). */
#include "formats/tensorflow/bundle.h"

#include "base/text.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/protobuf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields of a SavedModel, and of its graphs with their tags. */
enum { SAVED_MODEL_META_GRAPH = 2, META_GRAPH_GRAPH = 2 };

/* Fields of GraphDef, NodeDef, an entry of its attributes, and AttrValue. */
enum { GRAPH_NODE = 1, NODE_NAME = 1, NODE_OPERATOR = 2, NODE_ATTRIBUTE = 5, ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { VALUE_TENSOR = 8 };

/* Fields of the library of functions, and of a function and its signature. */
enum { GRAPH_LIBRARY = 2, LIBRARY_FUNCTION = 1, FUNCTION_SIGNATURE = 1, FUNCTION_NODE = 3, SIGNATURE_NAME = 1 };

/* Names may take so many bytes for each byte of the file, and a constant: constants repeat their function's. */
enum { NAMES_RATIO = 16, NAMES_CONSTANT = 1024 * 1024 };

/* Fields of TensorProto. */
enum {
    TENSOR_DTYPE = 1,
    TENSOR_CONTENT = 4,
    FLOAT_VAL = 5,
    DOUBLE_VAL = 6,
    INT_VAL = 7,
    SCOMPLEX_VAL = 9,
    INT64_VAL = 10,
    BOOL_VAL = 11,
    DCOMPLEX_VAL = 12,
    HALF_VAL = 13,
    UINT32_VAL = 16,
    UINT64_VAL = 17,
};

enum { MAX_WORD = 16 };

/* Typed values by the dtype of their elements; all others are in INT_VAL. */
static const struct {
    const char *dtype;
    uint8_t field;
} typed_fields[] = {
    {"F32", FLOAT_VAL},     {"F64", DOUBLE_VAL}, {"C64", SCOMPLEX_VAL}, {"C128", DCOMPLEX_VAL}, {"I64", INT64_VAL},
    {"BOOL", BOOL_VAL},     {"F16", HALF_VAL},   {"BF16", HALF_VAL},    {"U32", UINT32_VAL},    {"U64", UINT64_VAL},
    {"F8_E5M2", 0 /* - */}, {"F8_E4M3", 0},      {"F8_E4M3FNUZ", 0},    {"F8_E5M2FNUZ", 0},
};

struct reader {
    struct checkpoint *checkpoint;
    struct source *file;
    struct tensor_set *tensors;
    uint64_t names_left;
    struct window window;
};

static bool is_word(const struct protobuf *message, const struct protobuf_field *field, const char *word)
{
    char text[MAX_WORD];
    struct error unused;
    size_t length = strlen(word);
    return field->wire == PROTOBUF_BYTES && field->length == length &&
           window_read(message->window, field->offset, length, text, &unused) && memcmp(text, word, length) == 0;
}

static uint32_t typed_field(const struct dtype *dtype)
{
    for (size_t i = 0; i < sizeof typed_fields / sizeof *typed_fields; i++)
        if (strcmp(typed_fields[i].dtype, dtype->name) == 0)
            return typed_fields[i].field;
    return INT_VAL;
}

static enum protobuf_wire wire_of(uint32_t field)
{
    if (field == FLOAT_VAL || field == SCOMPLEX_VAL)
        return PROTOBUF_FIXED32;
    return field == DOUBLE_VAL || field == DCOMPLEX_VAL ? PROTOBUF_FIXED64 : PROTOBUF_VARINT;
}

/* Returns `n` values, the last of which is repeated, or zeros if there is none, as a view of the shape. */
static const struct view *fill(struct arena *arena, const struct tensor *tensor, uint64_t n, const void *values)
{
    static const unsigned char zeros[16];
    const uint64_t one = 1, none = 0, n_rest = tensor_elements(tensor) - n;
    const struct view *known =
        n > 0 ? view_literal(arena, tensor->dtype, 1, &n, values) : view_literal(arena, tensor->dtype, 1, &one, zeros);
    const struct view *parts[2] = {known, known};
    if (n_rest > 0)
        parts[1] = view_strided(arena, known, 1, &n_rest, n > 0 ? n - 1 : 0, &none);
    const struct view *flat = n_rest == 0 ? known : n == 0 ? parts[1] : view_concatenate(arena, parts, 2, 0);
    return view_reshape(arena, flat, tensor->rank, tensor->shape);
}

static bool set_typed(struct reader *reader, const struct protobuf *message, struct tensor *tensor, struct error *error)
{
    uint32_t field = typed_field(tensor->dtype);
    enum protobuf_wire encoding = wire_of(field);
    struct protobuf_numbers numbers;
    struct arena *arena = reader->checkpoint->arena;
    unsigned n_parts = tensor->dtype->kind == DTYPE_COMPLEX ? 2 : 1;
    uint64_t n_elements = tensor_elements(tensor);
    if (!protobuf_count_numbers(*message, field, encoding, &numbers, error))
        return false;
    uint64_t n = numbers.count / n_parts;
    if (n > n_elements || numbers.count % n_parts != 0)
        return protobuf_refuse(message, message->at, "a constant of more values than its shape has", error);
    unsigned width = tensor->dtype->block_bytes / n_parts;
    unsigned char *values = arena_alloc(arena, numbers.count * width + 1); /* at most 8 bytes for each of the file */
    if (!protobuf_read_numbers(*message, field, encoding, width, values, error))
        return false;
    tensor->view = n_elements > 0 ? fill(arena, tensor, n, values)
                                  : view_literal(arena, tensor->dtype, tensor->rank, tensor->shape, values);
    return true;
}

/* Sets the dtype and shape, which have the same fields as in the index of a checkpoint, and the values. */
static bool set_tensor(struct reader *reader, const struct protobuf *message, struct tensor *tensor,
                       struct error *error)
{
    struct bundle_entry entry;
    struct protobuf_field content;
    uint64_t n_elements, n_bytes;
    if (!bundle_read_entry(*message, &entry, error) || !protobuf_find(*message, TENSOR_CONTENT, &content, error))
        return false;
    tensor->dtype = entry.dtype;
    tensor->refusal = entry.refusal;
    tensor->is_no_number = entry.refusal != NULL;
    tensor->rank = (uint8_t)entry.rank;
    tensor->shape = arena_copy(reader->checkpoint->arena, entry.shape, entry.rank * sizeof *entry.shape);
    if (!shape_size(entry.dtype, entry.shape, entry.rank, &n_elements, &n_bytes, NULL))
        return protobuf_refuse(message, message->at, "a constant whose size overflows", error);
    if (tensor->refusal != NULL)
        return true;
    if (content.length == 0)
        return set_typed(reader, message, tensor, error);
    if (content.length != n_bytes)
        return protobuf_refuse(message, content.offset, "a constant whose number of bytes does not fit its shape",
                               error);
    tensor->source = reader->file;
    tensor->offset = content.offset;
    tensor->length = n_bytes;
    return true;
}

/* Finds the tensor in the attribute "value" of a node. */
static bool find_tensor(struct protobuf node, struct protobuf_field *ret_tensor, struct error *error)
{
    struct protobuf_field field, key, value;
    *ret_tensor = (struct protobuf_field){0};
    bool more;
    while (protobuf_next(&node, &field, &more, error) && more) {
        if (field.number != NODE_ATTRIBUTE || field.wire != PROTOBUF_BYTES)
            continue;
        struct protobuf entry = protobuf_inner(&node, &field);
        if (!protobuf_find(entry, ENTRY_KEY, &key, error) || !protobuf_find(entry, ENTRY_VALUE, &value, error))
            return false;
        if (is_word(&node, &key, "value") && value.number != 0 &&
            !protobuf_find(protobuf_inner(&node, &value), VALUE_TENSOR, ret_tensor, error))
            return false;
    }
    return !more;
}

/* Sets the name of a constant, after that of its function and '/'. */
static bool set_name(struct reader *reader, const struct protobuf *node, const struct protobuf_field *name,
                     const char *function, struct tensor *tensor, struct error *error)
{
    size_t n_function = function != NULL ? strlen(function) + 1 : 0;
    char *text = protobuf_text(node, name, TENSOR_MAX_NAME, error);
    if (text == NULL)
        return false;
    tensor->name_length = (uint32_t)(n_function + name->length);
    bool fits = tensor->name_length <= TENSOR_MAX_NAME && tensor->name_length <= reader->names_left;
    if (fits) {
        char *whole = arena_alloc(reader->checkpoint->arena, (size_t)tensor->name_length + 1);
        if (n_function > 0)
            sprintf(whole, "%s/", function);
        memcpy(whole + n_function, text, (size_t)name->length);
        tensor->name = whole;
        reader->names_left -= tensor->name_length;
    }
    free(text);
    return fits || protobuf_refuse(node, name->offset, "the names of constants are too long", error);
}

static bool add_node(struct reader *reader, struct protobuf node, const char *function, struct error *error)
{
    struct protobuf_field name, operator, value;
    struct tensor tensor = {0};
    if (!protobuf_find(node, NODE_NAME, &name, error) || !protobuf_find(node, NODE_OPERATOR, &operator, error))
        return false;
    if (!is_word(&node, &operator, "Const"))
        return true;
    if (!find_tensor(node, &value, error))
        return false;
    if (name.length == 0 || value.number == 0)
        return protobuf_refuse(&node, node.at, "a constant without a name or a value", error);
    if (reader->tensors->n_tensors == TENSOR_SET_MAX)
        return protobuf_refuse(&node, node.at, "too many constants", error);
    if (!set_name(reader, &node, &name, function, &tensor, error))
        return false;
    struct protobuf message = protobuf_inner(&node, &value);
    if (!set_tensor(reader, &message, &tensor, error))
        return false;
    tensor_set_add(reader->tensors, &tensor);
    return true;
}

/* Adds the constants in fields of that number, which are nodes. */
static bool add_nodes(struct reader *reader, struct protobuf message, uint32_t number, const char *function,
                      struct error *error)
{
    struct protobuf_field field;
    bool more;
    while (protobuf_next(&message, &field, &more, error) && more) {
        if (field.number == number && field.wire == PROTOBUF_BYTES &&
            !add_node(reader, protobuf_inner(&message, &field), function, error))
            return false;
    }
    return !more;
}

static bool add_function(struct reader *reader, struct protobuf function, struct error *error)
{
    struct protobuf_field signature, name;
    if (!protobuf_find(function, FUNCTION_SIGNATURE, &signature, error) ||
        (signature.number != 0 && !protobuf_find(protobuf_inner(&function, &signature), SIGNATURE_NAME, &name, error)))
        return false;
    if (signature.number == 0 || name.number == 0)
        return protobuf_refuse(&function, function.at, "a function without a name", error);
    char *text = protobuf_text(&function, &name, TENSOR_MAX_NAME, error);
    bool good = text != NULL && add_nodes(reader, function, FUNCTION_NODE, text, error);
    free(text);
    return good;
}

static bool add_library(struct reader *reader, struct protobuf library, struct error *error)
{
    struct protobuf_field field;
    bool more;
    while (protobuf_next(&library, &field, &more, error) && more) {
        if (field.number == LIBRARY_FUNCTION && field.wire == PROTOBUF_BYTES &&
            !add_function(reader, protobuf_inner(&library, &field), error))
            return false;
    }
    return !more;
}

static bool read_graph(struct reader *reader, struct protobuf graph, struct error *error)
{
    struct protobuf_field field;
    return add_nodes(reader, graph, GRAPH_NODE, NULL, error) && protobuf_find(graph, GRAPH_LIBRARY, &field, error) &&
           (field.number == 0 || add_library(reader, protobuf_inner(&graph, &field), error));
}

/* Makes a reader, on the heap, and returns the whole file as a message. */
static struct reader *begin(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                            struct protobuf *ret_message)
{
    struct reader *reader = memory_alloc(sizeof *reader);
    *reader = (struct reader){.checkpoint = checkpoint, .file = file, .tensors = tensors, .window = {.source = file}};
    reader->names_left = NAMES_CONSTANT + NAMES_RATIO * source_size(file);
    *ret_message = (struct protobuf){.window = &reader->window, .name = source_name(file), .end = source_size(file)};
    return reader;
}

static bool read_file(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                      const struct open_options *options, struct error *error)
{
    (void)options;
    struct protobuf graph;
    size_t n_before = tensors->n_tensors;
    struct reader *reader = begin(checkpoint, file, tensors, &graph);
    bool good = source_check_fetched(file, error) && read_graph(reader, graph, error);
    free(reader);
    return good && (tensors->n_tensors > n_before ||
                    error_set(error, "%s: a TensorFlow graph without constants", source_name(file)));
}

/* Reads the graph of the first of a SavedModel's meta graphs: the others, for other tags, have the same constants. */
static bool read_first_graph(struct reader *reader, struct protobuf saved_model, struct error *error)
{
    struct protobuf_field field = {0}, graph;
    for (bool more = true; more && (field.number != SAVED_MODEL_META_GRAPH || field.wire != PROTOBUF_BYTES);)
        if (!protobuf_next(&saved_model, &field, &more, error))
            return false;
    if (field.number != SAVED_MODEL_META_GRAPH)
        return true;
    struct protobuf meta = protobuf_inner(&saved_model, &field);
    return protobuf_find(meta, META_GRAPH_GRAPH, &graph, error) &&
           (graph.number == 0 || read_graph(reader, protobuf_inner(&meta, &graph), error));
}

bool saved_model_read(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                      struct error *error)
{
    struct protobuf message;
    struct reader *reader = begin(checkpoint, file, tensors, &message);
    bool good = source_check_fetched(file, error) && read_first_graph(reader, message, error);
    free(reader);
    return good;
}

/* A SavedModel, whose graph has the same ending, begins with its version. */
static enum probe probe(const struct input *input)
{
    enum { NODE_TAG = GRAPH_NODE << 3 | PROTOBUF_BYTES };
    return input->file_name != NULL && text_ends_with(input->file_name, ".pb") && input->head_length > 0 &&
                   input->head[0] == NODE_TAG
               ? PROBE_SURE
               : PROBE_NO;
}

const struct format tensorflow_graph_format = {
    .name = "tensorflow-graph",
    .summary = "frozen graphs of TensorFlow: the constants of a .pb file",
    .probe = probe,
    .read_file = read_file,
};
