/* ONNX: models written by hand. Expected values are those of onnx.numpy_helper for the same bytes, where it takes them.
 */
#include "base/little_endian.h"
#include "tests/unit/formats/torch/archive.h"
#include "tests/unit/write_protobuf.h"

static const struct open_options defaults;

enum {
    DATA_TYPE = 2,
    FLOAT_DATA = 4,
    INT32_DATA = 5,
    INT64_DATA = 7,
    NAME = 8,
    RAW = 9,
    UINT64_DATA = 11,
    EXTERNAL = 13
};

/* Begins a TensorProto of at most two dimensions; a size of -1 ends the shape. */
static struct buffer tensor_of(const char *name, unsigned type, int64_t rows, int64_t columns)
{
    struct buffer tensor = {0};
    if (rows >= 0)
        put_number(&tensor, 1, (uint64_t)rows);
    if (columns >= 0)
        put_number(&tensor, 1, (uint64_t)columns);
    put_number(&tensor, DATA_TYPE, type);
    put_text(&tensor, NAME, name);
    return tensor;
}

/* Writes a model of that graph. */
static void write_model(const char *path, struct buffer *graph)
{
    struct buffer model = {0};
    put_number(&model, 1, 8);
    put_text(&model, 2, "tests");
    put_message(&model, 7, graph);
    files_write(path, model.bytes, model.length);
    buffer_free(&model);
}

static void check_file(const char *path, const char *says)
{
    char *described = archive_describe(path, &defaults);
    CHECK_TEXT(described, says);
    free(described);
}

/* Checks a model with the tensor as its only initializer. */
static void check_tensor(struct buffer tensor, const char *says)
{
    struct buffer graph = {0};
    put_message(&graph, 5, &tensor);
    write_model("x.onnx", &graph);
    check_file("x.onnx", says);
}

static void check_raw(unsigned type, int64_t rows, int64_t columns, const char *bytes, size_t length, const char *says)
{
    struct buffer tensor = tensor_of("w", type, rows, columns);
    put_bytes(&tensor, RAW, bytes, length);
    check_tensor(tensor, says);
}

/* Checks typed data, in one packed field or in a field for each number. */
static void check_varints(unsigned type, unsigned field, bool packed, const int64_t *numbers, size_t n, int64_t size,
                          const char *says)
{
    struct buffer tensor = tensor_of("w", type, size, -1), run = {0};
    for (size_t i = 0; i < n; i++)
        if (packed)
            put_varint(&run, (uint64_t)numbers[i]);
        else
            put_number(&tensor, field, (uint64_t)numbers[i]);
    if (packed)
        put_message(&tensor, field, &run);
    check_tensor(tensor, says);
}

static void check_values(void)
{
    float floats[] = {1, 2, 3, 4};
    static const int64_t small[] = {1, -2, 3}, bits[] = {0x3f80}, nibbles[] = {0xf1, 0x08},
                         unsigned_ones[] = {0xffffffff};
    little_endian(floats, 4, sizeof *floats);
    check_raw(1, 2, 2, (const char *)floats, 16, "w F32 [2, 2] 1 2 3 4");
    check_raw(1, -1, -1, (const char *)floats, 4, "w F32 [] 1");
    check_raw(3, 3, -1, "\1\xff\2", 3, "w I8 [3] 1 -1 2");
    check_raw(21, 3, -1, "\xf1\x08", 2, "w U4 [3] 1 15 8");
    check_raw(22, 3, -1, "\xf1\x08", 2, "w I4 [3] 1 -1 -8");
    check_raw(25, 5, -1, "\xe4\x02", 2, "w U2 [5] 0 1 2 3 2");
    check_raw(26, 5, -1, "\xe4\x02", 2, "w I2 [5] 0 1 -2 -1 -2");
    check_raw(23, 4, -1, "\x21\xf3", 2, "w F4 [4] 0.5 1 1.5 -6");
    check_raw(23, 3, -1, "\x21\x03", 2, "w U8 [3] 1 2 3");
    check_raw(1, 0, 3, "", 0, "w F32 [0, 3]");
    for (int packed = 0; packed < 2; packed++) {
        check_varints(6, INT32_DATA, packed, small, 3, 3, "w I32 [3] 1 -2 3");
        check_varints(3, INT32_DATA, packed, small, 3, 3, "w I8 [3] 1 -2 3");
        check_varints(7, INT64_DATA, packed, small, 3, 3, "w I64 [3] 1 -2 3");
        check_varints(16, INT32_DATA, packed, bits, 1, 1, "w BF16 [1] 1");
        check_varints(22, INT32_DATA, packed, nibbles, 2, 3, "w I4 [3] 1 -1 -8");
        check_varints(12, UINT64_DATA, packed, unsigned_ones, 1, 1, "w U32 [1] 4.29497e+09");
        check_varints(6, INT32_DATA, packed, small, 3, 4,
                      "x.onnx: offset 13: a tensor with 12 bytes of elements, but its shape needs 16");
    }
    struct buffer tensor = tensor_of("w", 1, 4, -1);
    put_bytes(&tensor, FLOAT_DATA, floats, 8);
    put_bytes(&tensor, FLOAT_DATA, floats + 2, 4);
    put_varint(&tensor, FLOAT_DATA << 3 | 5);
    buffer_append(&tensor, floats + 3, 4);
    check_tensor(tensor, "w F32 [4] 1 2 3 4");
}

static void check_faults(void)
{
    check_raw(1, 2, -1, "1234", 4, "x.onnx: offset 13: a tensor with 4 bytes of elements, but its shape needs 8");
    check_raw(0, 1, -1, "1234", 4, "x.onnx: offset 13: a tensor of the unknown data type 0");
    check_raw(27, 1, -1, "1234", 4, "x.onnx: offset 13: a tensor of the unknown data type 27");
    check_raw(1, INT64_MAX, 8, "1234", 4, "x.onnx: offset 13: a tensor whose size overflows");
    check_raw(8, 1, -1, "", 0, "w U8 [1] (texts have no values)");
    struct buffer tensor = tensor_of("w", 1, 1, -1);
    put_number(&tensor, 1, UINT64_MAX);
    check_tensor(tensor, "x.onnx: offset 13: a tensor with a negative dimension");
    tensor = tensor_of("w", 1, 1, -1);
    put_bytes(&tensor, RAW, "1234", 4);
    put_bytes(&tensor, FLOAT_DATA, "1234", 4);
    check_tensor(tensor, "x.onnx: offset 13: a tensor with both raw and typed data");
    struct buffer graph = {0};
    put_text(&graph, 2, "empty");
    write_model("x.onnx", &graph);
    check_file("x.onnx", "x.onnx: an ONNX model without initializers or constants");
    files_write("x.onnx", "\x08\x08\x3a\x05\x2a", 5);
    check_file("x.onnx", "x.onnx: offset 3: truncated: a field has more bytes than are left");
    files_write("x.onnx", "\x08\x08\x3b", 3);
    check_file("x.onnx", "x.onnx: offset 3: a group or an unknown kind of field");
    files_write("x.onnx", "\x08\x08\x02\x00", 4);
    check_file("x.onnx", "x.onnx: offset 2: a field without a valid number");
    files_write("x.onnx", "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12);
    check_file("x.onnx", "x.onnx: offset 1: a number of more than 10 bytes");
}

static struct buffer graph_of(const char *name)
{
    struct buffer graph = {0}, tensor = tensor_of(name, 2, 1, -1);
    put_bytes(&tensor, RAW, "\1", 1);
    put_message(&graph, 5, &tensor);
    return graph;
}

/* Metadata that do not all fit are an error: metadata.json has all or none. */
static void check_metadata(unsigned n, const char *says)
{
    struct buffer model = {0}, graph = graph_of("w");
    put_message(&model, 7, &graph);
    for (unsigned i = 0; i < n; i++) {
        struct buffer entry = {0};
        put_text(&entry, 1, "key");
        put_text(&entry, 2, "value");
        put_message(&model, 14, &entry);
    }
    files_write("x.onnx", model.bytes, model.length);
    check_file("x.onnx", says);
    buffer_free(&model);
}

/* External data: texts of keys and values. */
static void check_external(const char *location, const char *offset, const char *length, const char *says)
{
    const char *const pairs[][2] = {{"location", location}, {"offset", offset}, {"length", length}};
    struct buffer tensor = tensor_of("w", 2, 2, -1), entry = {0}, graph = {0};
    put_number(&tensor, 14, 1);
    for (size_t i = 0; i < 3; i++) {
        if (pairs[i][1] == NULL)
            continue;
        put_text(&entry, 1, pairs[i][0]);
        put_text(&entry, 2, pairs[i][1]);
        put_message(&tensor, EXTERNAL, &entry);
    }
    put_message(&graph, 5, &tensor);
    write_model("e/model.onnx", &graph);
    check_file("e/model.onnx", says);
}

static void check_externals(void)
{
    static const char outside[] =
        "model.onnx: offset 13: external data whose location is not a file of the model's directory";
    static const char not_number[] = "model.onnx: offset 42: external data whose offset or length is not a number";
    files_write("e/data", "\1\2\3\4", 4);
    files_write("e/sub/data", "\5\6", 2);
    files_write("secret", "\7\7", 2);
    check_external("data", NULL, "2", "w U8 [2] 1 2");
    check_external("data", "1", "2", "w U8 [2] 2 3");
    check_external("data", "2", NULL, "w U8 [2] 3 4");
    check_external("sub/data", NULL, NULL, "w U8 [2] 5 6");
    check_file("e", "w U8 [2] 5 6"); /* the directory's model.onnx */
    check_external("data", NULL, NULL,
                   "model.onnx: offset 13: a tensor with 4 bytes of elements, but its shape needs 2");
    check_external("data", "3", "2", "model.onnx: data has 4 bytes, but a tensor lies at 3 to 3 + 2");
    check_external(
        "data", "18446744073709551615", "2",
        "model.onnx: data has 4 bytes, but a tensor lies at 18446744073709551615 to 18446744073709551615 + 2");
    check_external("data", "-1", "2", not_number);
    check_external("data", "", "2", not_number);
    check_external("data", "18446744073709551616", "2", not_number);
    check_external("../secret", NULL, NULL, outside);
    check_external("sub/../../secret", NULL, NULL, outside);
    check_external("/etc/passwd", NULL, NULL, outside);
    check_external("", NULL, NULL, outside);
    check_external(NULL, NULL, NULL, outside);
    check_external("absent", NULL, NULL, "model.onnx: external data: absent: No such file or directory");
    check_external("sub", NULL, NULL, "model.onnx: external data: sub: not a regular file");
    check_external("sub/data", NULL, NULL, "w U8 [2] 5 6");
    files_must(remove("e/sub/data") == 0, "remove");
    files_link("e/sub/data", "../../secret");
    char *described = archive_describe("e/model.onnx", &defaults);
    CHECK(strstr(described, "outside of the model's directory; -o follow-links follows it") != NULL);
    free(described);
}

/* A Constant node with one attribute, which is then empty. */
static struct buffer constant_of(const char *output, const char *attribute_name, struct buffer *attribute)
{
    struct buffer node = {0};
    put_text(attribute, 1, attribute_name);
    put_text(&node, 2, output);
    put_text(&node, 4, "Constant");
    put_message(&node, 5, attribute);
    return node;
}

/* Appends four constants, of a number, of numbers, of a tensor and of a text. */
static void put_constants(struct buffer *graph)
{
    float floats[] = {1.5f, 2.5f};
    struct buffer attribute = {0}, node;
    put_varint(&attribute, 2 << 3 | 5);
    little_endian(floats, 2, sizeof *floats);
    buffer_append(&attribute, floats, 4);
    node = constant_of("f", "value_float", &attribute);
    put_message(graph, 1, &node);
    put_bytes(&attribute, 7, floats, 8);
    node = constant_of("fs", "value_floats", &attribute);
    put_message(graph, 1, &node);
    put_number(&attribute, 3, (uint64_t)-7);
    node = constant_of("i", "value_int", &attribute);
    put_message(graph, 1, &node);
    struct buffer tensor = tensor_of("inner", 2, 1, -1);
    put_bytes(&tensor, RAW, "\5", 1);
    put_message(&attribute, 5, &tensor);
    node = constant_of("t", "value", &attribute);
    put_message(graph, 1, &node);
    put_text(&attribute, 4, "text");
    node = constant_of("s", "value_string", &attribute);
    put_message(graph, 1, &node);
}

/* Puts a graph into the attribute `branch` of a node of another graph. */
static struct buffer around(const char *node_name, const char *output, struct buffer *inner)
{
    struct buffer graph = {0}, node = {0}, attribute = {0};
    put_message(&attribute, 6, inner);
    put_text(&attribute, 1, "branch");
    put_text(&node, 2, output);
    put_message(&node, 5, &attribute);
    put_text(&node, 3, node_name);
    put_text(&node, 4, "If");
    put_message(&graph, 1, &node);
    return graph;
}

static void check_graphs(void)
{
    struct buffer graph = {0};
    put_constants(&graph);
    write_model("x.onnx", &graph);
    check_file("x.onnx", "f F32 [] 1.5\nfs F32 [2] 1.5 2.5\ni I64 [] -7\nt U8 [1] 5");
    struct buffer innermost = graph_of("w"), middle = around("", "y", &innermost);
    struct buffer tensor = tensor_of("v", 2, 1, -1);
    put_bytes(&tensor, RAW, "\2", 1);
    put_message(&middle, 5, &tensor);
    graph = around("outer", "z", &middle);
    tensor = tensor_of("w", 2, 1, -1);
    put_bytes(&tensor, RAW, "\3", 1);
    put_message(&graph, 5, &tensor);
    write_model("x.onnx", &graph);
    check_file("x.onnx", "outer/branch/y/branch/w U8 [1] 1\nouter/branch/v U8 [1] 2\nw U8 [1] 3");
}

/* A graph in `depth` others. */
static void check_depth(unsigned depth, bool opens)
{
    struct buffer graph = graph_of("w");
    for (unsigned i = 0; i < depth; i++)
        graph = around("n", "o", &graph);
    write_model("x.onnx", &graph);
    char *described = archive_describe("x.onnx", &defaults);
    CHECK((strstr(described, "graphs are nested more than 32 deep") == NULL) == opens);
    free(described);
}

/* A model in two pieces, which is one; a name, a type and data that come twice, of which the last counts. */
static void check_pieces(void)
{
    struct buffer model = {0}, first = graph_of("a"), second = {0}, tensor = tensor_of("x", 1, 1, -1);
    put_number(&tensor, DATA_TYPE, 2);
    put_text(&tensor, NAME, "b");
    put_bytes(&tensor, RAW, "1234", 4);
    put_bytes(&tensor, RAW, "\4", 1);
    put_message(&second, 5, &tensor);
    put_number(&model, 1, 8);
    put_message(&model, 7, &first);
    put_message(&model, 7, &second);
    files_write("x", model.bytes, model.length); /* known by its content */
    check_file("x", "a U8 [1] 1\nb U8 [1] 4");
    buffer_free(&model);
}

int main(void)
{
    files_begin();
    check_values();
    check_faults();
    check_metadata(256, "w U8 [1] 1");
    check_metadata(257, "x.onnx: offset 3607: more than 256 texts of metadata");
    check_externals();
    check_graphs();
    check_depth(31, true);
    check_depth(32, false);
    check_pieces();
    files_remove();
    return check_done();
}
