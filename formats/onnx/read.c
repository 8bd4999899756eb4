/* ONNX: the initializers and constants of a graph.
 *
 * A tensor has the name of its initializer, or, for a Constant node, of the node's output. In a subgraph, such as the
 * branch of an If node, NODE/ATTRIBUTE/ precedes the name, where NODE is the node's name or its first output. Tensors
 * are in the order of the file. Functions and training graphs are left out, and so are constants that are texts.
 * Source: onnx.proto.
 *
 * The file is one protocol buffer, of which only headers are read. The walk keeps a stack instead of recursing. */
#include "base/text.h"
#include "formats/format.h"
#include "formats/onnx/tensor.h"

#include <stdlib.h>
#include <string.h>

/* Fields of ModelProto, GraphProto, NodeProto and AttributeProto. */
enum { MODEL_GRAPH = 7, MODEL_METADATA = 14, MODEL_TRAINING = 20, MODEL_FUNCTIONS = 25 };
enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_SPARSE = 15 };
enum { NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OPERATOR = 4, NODE_ATTRIBUTE = 5 };
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_FLOAT = 2,
    ATTRIBUTE_INT = 3,
    ATTRIBUTE_TENSOR = 5,
    ATTRIBUTE_GRAPH = 6,
    ATTRIBUTE_FLOATS = 7,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_GRAPHS = 11,
    ATTRIBUTE_SPARSE = 22,
};

enum { MAX_GRAPHS = 32, MAX_WORD = 64, MAX_METADATA = 256, MAX_METADATA_TEXT = 4096 };

/* Names take at most so many bytes for each byte of the file, and a constant: subgraphs share the beginning of names.
 */
enum { NAMES_RATIO = 16, NAMES_CONSTANT = 1024 * 1024 };

/* A message whose fields are being read. */
enum kind { MODEL, GRAPH, NODE, ATTRIBUTE };

struct level {
    enum kind kind;
    struct protobuf message;
    size_t path_length;           /* of the path to it */
    struct protobuf_field label;  /* of a node: its name or first output; of an attribute: its name */
    struct protobuf_field output; /* of a node: the first */
    bool is_constant;             /* a node */
    uint64_t n_graphs;            /* of an attribute, so far */
};

struct walk {
    struct onnx_reader reader;
    struct level levels[4 * MAX_GRAPHS];
    unsigned depth, n_graphs, n_metadata;
    bool has_others; /* functions or training graphs */
};

/* Reads a short text into `out`; a longer one becomes "". */
static bool read_word(const struct protobuf *message, const struct protobuf_field *field, char out[MAX_WORD],
                      struct error *error)
{
    *out = '\0';
    if (field->length >= MAX_WORD)
        return true;
    out[field->length] = '\0';
    return window_read(message->window, field->offset, (size_t)field->length, out, error);
}

static struct level *push(struct walk *walk, enum kind kind, struct protobuf message)
{
    struct level *level = &walk->levels[walk->depth++];
    *level = (struct level){.kind = kind, .message = message, .path_length = walk->reader.path.length};
    return level;
}

/* Reads the name, the operator and the first output of a node. */
static bool enter_node(struct walk *walk, struct protobuf message, struct error *error)
{
    struct protobuf_field field, name = {0};
    struct protobuf rest = message;
    bool has_attributes = false;
    char word[MAX_WORD] = "";
    struct level *level = push(walk, NODE, message);
    bool more;
    while (protobuf_next(&rest, &field, &more, error) && more) {
        if (field.wire != PROTOBUF_BYTES)
            continue;
        if (field.number == NODE_NAME)
            name = field;
        if (field.number == NODE_OUTPUT && level->output.number == 0)
            level->output = field;
        if (field.number == NODE_OPERATOR && !read_word(&message, &field, word, error))
            return false;
        has_attributes |= field.number == NODE_ATTRIBUTE;
    }
    if (more)
        return false;
    level->label = name.length > 0 ? name : level->output;
    level->is_constant = strcmp(word, "Constant") == 0;
    if (!has_attributes)
        walk->depth--;
    return true;
}

/* Adds the value of a Constant node, which an attribute with the name of its kind holds. */
static bool add_constant(struct walk *walk, const struct level *node, struct protobuf message, struct error *error)
{
    struct onnx_reader *reader = &walk->reader;
    struct protobuf_field name, field;
    char word[MAX_WORD];
    if (!protobuf_find(message, ATTRIBUTE_NAME, &name, error) || !read_word(&message, &name, word, error))
        return false;
    if (strcmp(word, "value_float") == 0)
        return onnx_add_numbers(reader, &message, ATTRIBUTE_FLOAT, PROTOBUF_FIXED32, true, &node->output, error);
    if (strcmp(word, "value_floats") == 0)
        return onnx_add_numbers(reader, &message, ATTRIBUTE_FLOATS, PROTOBUF_FIXED32, false, &node->output, error);
    if (strcmp(word, "value_int") == 0)
        return onnx_add_numbers(reader, &message, ATTRIBUTE_INT, PROTOBUF_VARINT, true, &node->output, error);
    if (strcmp(word, "value_ints") == 0)
        return onnx_add_numbers(reader, &message, ATTRIBUTE_INTS, PROTOBUF_VARINT, false, &node->output, error);
    bool more;
    while (protobuf_next(&message, &field, &more, error) && more) {
        struct protobuf inner = protobuf_inner(&message, &field);
        if (field.wire != PROTOBUF_BYTES)
            continue;
        if (field.number == ATTRIBUTE_TENSOR && !onnx_add_tensor(reader, &inner, &node->output, error))
            return false;
        if (field.number == ATTRIBUTE_SPARSE && !onnx_list_sparse(reader, &inner, &node->output, error))
            return false;
    }
    return !more;
}

static bool append_label(struct walk *walk, const struct protobuf *message, const struct protobuf_field *label,
                         struct error *error)
{
    char *text = protobuf_text(message, label, TENSOR_MAX_NAME, error);
    if (text == NULL)
        return false;
    buffer_append(&walk->reader.path, text, (size_t)label->length);
    buffer_append_text(&walk->reader.path, "/");
    free(text);
    if (walk->reader.path.length > TENSOR_MAX_NAME)
        return protobuf_refuse(message, message->at, "the names of the nodes around a graph are too long", error);
    return true;
}

/* Enters a graph in an attribute of a node, which are the last two levels. */
static bool enter_subgraph(struct walk *walk, const struct protobuf_field *field, struct error *error)
{
    struct level *attribute = &walk->levels[walk->depth - 1];
    const struct level *node = attribute - 1;
    if (walk->n_graphs == MAX_GRAPHS)
        return protobuf_refuse(&attribute->message, field->offset, "graphs are nested more than 32 deep", error);
    walk->n_graphs++;
    push(walk, GRAPH, protobuf_inner(&attribute->message, field));
    if (!append_label(walk, &node->message, &node->label, error) ||
        !append_label(walk, &attribute->message, &attribute->label, error))
        return false;
    if (field->number == ATTRIBUTE_GRAPHS)
        buffer_printf(&walk->reader.path, "%llu/", (unsigned long long)attribute->n_graphs++);
    return true;
}

static bool enter_attribute(struct walk *walk, struct protobuf message, struct error *error)
{
    return protobuf_find(message, ATTRIBUTE_NAME, &push(walk, ATTRIBUTE, message)->label, error);
}

/* Adds a StringStringEntryProto to the metadata, unless it is too long. */
static bool add_metadata(struct walk *walk, struct protobuf entry, struct error *error)
{
    struct protobuf_field field;
    char *texts[2] = {NULL};
    bool good = true, more = true;
    while (good && more) {
        good = protobuf_next(&entry, &field, &more, error);
        if (!good || !more || field.wire != PROTOBUF_BYTES || field.number < 1 || field.number > 2 ||
            field.length > MAX_METADATA_TEXT)
            continue;
        free(texts[field.number - 1]);
        texts[field.number - 1] = protobuf_text(&entry, &field, MAX_METADATA_TEXT, error);
        good = texts[field.number - 1] != NULL;
    }
    if (good && texts[0] != NULL && texts[1] != NULL) {
        good = walk->n_metadata++ < MAX_METADATA ||
               protobuf_refuse(&entry, field.offset, "more than 256 texts of metadata", error);
        if (good)
            checkpoint_add_metadata(walk->reader.checkpoint, texts[0], texts[1]);
    }
    free(texts[0]);
    free(texts[1]);
    return good;
}

static bool read_model_field(struct walk *walk, struct protobuf inner, uint32_t number, struct error *error)
{
    walk->has_others |= number == MODEL_TRAINING || number == MODEL_FUNCTIONS;
    if (number == MODEL_METADATA)
        return add_metadata(walk, inner, error);
    if (number == MODEL_GRAPH) {
        walk->n_graphs++;
        push(walk, GRAPH, inner);
    }
    return true;
}

static bool read_graph_field(struct walk *walk, struct protobuf inner, uint32_t number, struct error *error)
{
    if (number == GRAPH_INITIALIZER)
        return onnx_add_tensor(&walk->reader, &inner, NULL, error);
    if (number == GRAPH_SPARSE)
        return onnx_list_sparse(&walk->reader, &inner, NULL, error);
    return number != GRAPH_NODE || enter_node(walk, inner, error);
}

/* Reads a field of bytes of the last level. */
static bool read_field(struct walk *walk, const struct protobuf_field *field, struct error *error)
{
    struct level *level = &walk->levels[walk->depth - 1];
    struct protobuf inner = protobuf_inner(&level->message, field);
    switch (level->kind) {
    case MODEL:
        return read_model_field(walk, inner, field->number, error);
    case GRAPH:
        return read_graph_field(walk, inner, field->number, error);
    case NODE:
        if (field->number != NODE_ATTRIBUTE)
            return true;
        return level->is_constant ? add_constant(walk, level, inner, error) : enter_attribute(walk, inner, error);
    case ATTRIBUTE:
        if (field->number != ATTRIBUTE_GRAPH && field->number != ATTRIBUTE_GRAPHS)
            return true;
        return enter_subgraph(walk, field, error);
    }
    return true;
}

static bool read_model(struct walk *walk, struct protobuf model, struct error *error)
{
    struct protobuf_field field;
    push(walk, MODEL, model);
    while (walk->depth > 0) {
        struct level *level = &walk->levels[walk->depth - 1];
        bool more;
        if (!protobuf_next(&level->message, &field, &more, error))
            return false;
        if (more && field.wire == PROTOBUF_BYTES && !read_field(walk, &field, error))
            return false;
        if (more)
            continue;
        walk->reader.path.length = level->path_length;
        walk->n_graphs -= level->kind == GRAPH;
        walk->depth--;
    }
    return true;
}

static bool read_source(struct checkpoint *checkpoint, struct source *file, const struct location *location,
                        struct tensor_set *tensors, struct error *error)
{
    struct walk *walk = memory_alloc(sizeof *walk);
    size_t n_before = tensors->n_tensors;
    *walk = (struct walk){.reader = {.checkpoint = checkpoint,
                                     .file = file,
                                     .location = location,
                                     .tensors = tensors,
                                     .window = {.source = file},
                                     .names_left = NAMES_CONSTANT + NAMES_RATIO * source_size(file),
                                     .decoded_left = ONNX_DECODED_MOST}};
    struct protobuf model = {.window = &walk->reader.window, .name = source_name(file), .end = source_size(file)};
    bool good = source_check_fetched(file, error) && read_model(walk, model, error);
    if (good && tensors->n_tensors == n_before)
        good = error_set(error, "%s: an ONNX model without initializers or constants", source_name(file));
    if (good && walk->has_others)
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "%s: the constants of functions and training graphs are not shown",
                        source_name(file));
    text_index_free(&walk->reader.file_names);
    buffer_free(&walk->reader.path);
    free(walk->reader.files);
    free(walk);
    return good;
}

static bool onnx_read_file(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                           const struct open_options *options, struct error *error)
{
    return read_source(checkpoint, file, NULL, tensors, error);
}

static bool is_onnx(const char *name)
{
    return text_ends_with(name, ".onnx") && *name != '.';
}

/* Returns the file to open: the named one, model.onnx, or the only one. */
static const char *choose_file(const struct input *input, struct error *error)
{
    static const char usual[] = "model.onnx";
    const char *found = NULL;
    if (input->file_name != NULL)
        return input->file_name;
    if (input_has(input, usual))
        return usual;
    for (size_t i = 0; i < input->list.count; i++) {
        const char *name = input->list.entries[i].name;
        if (is_onnx(name) && found != NULL) {
            error_set(error, "%s: %s and %s: several ONNX models; name one file", input->path, found, name);
            return NULL;
        }
        found = is_onnx(name) ? name : found;
    }
    return found;
}

static bool onnx_open(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                      struct error *error)
{
    const char *name = choose_file(input, error);
    struct source *file = name != NULL ? location_source(input->location, name, error) : NULL;
    if (file == NULL)
        return false;
    checkpoint_add_source(checkpoint, file);
    if (!read_source(checkpoint, file, input->location, checkpoint->unsealed, error))
        return false;
    format_add_side_files(checkpoint, input);
    return true;
}

/* Reports whether a file begins as a model does, with ir_version, a small number, and another of the model's fields. */
static bool begins_model(const unsigned char *head, size_t length)
{
    enum { IR_VERSION_TAG = 0x08, NEWEST_IR_VERSION = 20 };
    static const unsigned char tags[] = {0x12, 0x1a, 0x22, 0x28, 0x32, 0x3a, 0x42, 0x72};
    return length >= 4 && head[0] == IR_VERSION_TAG && head[1] >= 1 && head[1] <= NEWEST_IR_VERSION &&
           memchr(tags, head[2], sizeof tags) != NULL;
}

/* Reports whether a file has a graph at its top and no field that a model cannot have. Core ML's models and SavedModels
 * of TensorFlow begin alike. A damaged file counts as a model, so that the error names its fault. */
static bool has_graph(const struct source *file)
{
    enum { LAST_FIELD = 26 };
    struct error unused;
    struct protobuf_field field = {0};
    struct window *window = memory_alloc(sizeof *window);
    *window = (struct window){.source = file};
    struct protobuf model = {.window = window, .name = source_name(file), .end = source_size(file)};
    bool more = true, good = true;
    while (good && more && field.number != MODEL_GRAPH && field.number <= LAST_FIELD)
        good = protobuf_next(&model, &field, &more, &unused);
    free(window);
    return !good || (more && field.number == MODEL_GRAPH);
}

/* Hugging Face's files come before ONNX in a directory that has both. */
static enum probe onnx_probe(const struct input *input)
{
    if (input->file != NULL) {
        if (is_onnx(input->file_name))
            return PROBE_SURE;
        return begins_model(input->head, input->head_length) && has_graph(input->file) ? PROBE_LIKELY : PROBE_NO;
    }
    for (size_t i = 0; i < input->list.count; i++)
        if (is_onnx(input->list.entries[i].name))
            return PROBE_MAYBE;
    return PROBE_NO;
}

static const struct extension extensions[] = {{".onnx"}, {0}};

const struct format onnx_format = {
    .name = "onnx",
    .extensions = extensions,
    .summary = "ONNX: the initializers and constants of a .onnx file, with external data",
    .probe = onnx_probe,
    .open = onnx_open,
    .read_file = onnx_read_file,
};
