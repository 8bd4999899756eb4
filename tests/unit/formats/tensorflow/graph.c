/* Frozen graphs written by hand. Expected values are those of tf.make_ndarray() for the same messages. */
#include "base/little_endian.h"
#include "tests/unit/formats/torch/archive.h"
#include "tests/unit/write_protobuf.h"

static const struct open_options defaults;

enum { DTYPE = 1, SHAPE = 2, CONTENT = 4, FLOAT_VAL = 5, INT_VAL = 7, SCOMPLEX_VAL = 9, BOOL_VAL = 11, HALF_VAL = 13 };

/* Begins a TensorProto of one dimension; -1: a scalar. */
static struct buffer tensor_of(unsigned dtype, int64_t size)
{
    struct buffer tensor = {0}, shape = {0}, dimension = {0};
    put_number(&tensor, DTYPE, dtype);
    if (size >= 0) {
        put_number(&dimension, 1, (uint64_t)size);
        put_message(&shape, 2, &dimension);
    }
    put_message(&tensor, SHAPE, &shape);
    return tensor;
}

/* Appends a node with the tensor as its attribute "value". */
static void put_node(struct buffer *graph, const char *name, const char *operator, struct buffer * tensor)
{
    struct buffer node = {0}, entry = {0}, value = {0};
    put_text(&node, 1, name);
    put_text(&node, 2, operator);
    put_text(&entry, 1, "value");
    put_message(&value, 8, tensor);
    put_message(&entry, 2, &value);
    put_message(&node, 5, &entry);
    put_message(graph, 1, &node);
}

static void check(struct buffer *graph, const char *says)
{
    files_write("x.pb", graph->bytes, graph->length);
    char *described = archive_describe("x.pb", &defaults);
    CHECK_TEXT(described, says);
    free(described);
    buffer_free(graph);
}

static void check_tensor(struct buffer tensor, const char *says)
{
    struct buffer graph = {0};
    put_node(&graph, "w", "Const", &tensor);
    check(&graph, says);
}

static void check_bytes(unsigned dtype, int64_t size, unsigned field, const void *bytes, size_t length,
                        const char *says)
{
    struct buffer tensor = tensor_of(dtype, size);
    put_bytes(&tensor, field, bytes, length);
    check_tensor(tensor, says);
}

static void check_values(void)
{
    float floats[] = {1.5f, 2.5f};
    little_endian(floats, 2, sizeof *floats);
    check_bytes(1, 2, CONTENT, floats, 8, "w F32 [2] 1.5 2.5");
    check_bytes(1, 2, FLOAT_VAL, floats, 8, "w F32 [2] 1.5 2.5");
    check_bytes(1, 5, FLOAT_VAL, floats, 8, "w F32 [5] 1.5 2.5 2.5 2.5 2.5");
    check_bytes(1, 3, FLOAT_VAL, floats, 4, "w F32 [3] 1.5 1.5 1.5");
    check_bytes(1, -1, FLOAT_VAL, floats, 4, "w F32 [] 1.5");
    check_bytes(1, 0, FLOAT_VAL, "", 0, "w F32 [0]");
    check_bytes(3, 3, INT_VAL, "\5\7", 2, "w I32 [3] 5 7 7");
    check_bytes(6, 2, INT_VAL, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\2", 11, "w I8 [2] -1 2");
    check_bytes(14, 2, HALF_VAL, "\x80\x7f", 2, "w BF16 [2] 1 1");
    check_bytes(10, 2, BOOL_VAL, "\0\1", 2, "w BOOL [2] 0 1");
    check_bytes(8, 2, SCOMPLEX_VAL, floats, 8, "w C64 [2] 00 00 c0 3f 00 00 20 40 00 00 c0 3f 00 00 20 40");
    check_tensor(tensor_of(1, 3), "w F32 [3] 0 0 0");
    check_tensor(tensor_of(7, 1), "w U8 [1] (texts have no values)");
    struct buffer tensor = tensor_of(1, 3); /* unpacked, in two ways */
    put_varint(&tensor, FLOAT_VAL << 3 | 5);
    buffer_append(&tensor, floats, 4);
    put_bytes(&tensor, FLOAT_VAL, floats + 1, 4);
    check_tensor(tensor, "w F32 [3] 1.5 2.5 2.5");
    tensor = tensor_of(1, INT64_MAX / 32); /* costs nothing */
    check_tensor(tensor, "w F32 [288230376151711743] ...");
}

static void check_faults(void)
{
    float floats[] = {1, 2};
    little_endian(floats, 2, sizeof *floats);
    check_bytes(1, 1, FLOAT_VAL, floats, 8, "x.pb: offset 25: a constant of more values than its shape has");
    check_bytes(1, 3, CONTENT, floats, 8, "x.pb: offset 35: a constant whose number of bytes does not fit its shape");
    check_bytes(1, 1, FLOAT_VAL, floats, 3, "x.pb: offset 35: packed numbers that are not whole");
    check_bytes(99, 1, FLOAT_VAL, floats, 4, "x.pb: a tensor of the unknown data type 99");
    struct buffer tensor = tensor_of(8, 2); /* half of a complex number */
    put_bytes(&tensor, SCOMPLEX_VAL, floats, 4);
    check_tensor(tensor, "x.pb: offset 25: a constant of more values than its shape has");
    struct buffer graph = {0}, other = tensor_of(1, 1);
    put_node(&graph, "x", "Placeholder", &other);
    check(&graph, "x.pb: a TensorFlow graph without constants");
    tensor = tensor_of(1, 1), other = tensor_of(1, 1);
    put_node(&graph, "w", "Const", &tensor);
    put_node(&graph, "w", "Const", &other);
    check(&graph, "two tensors would have the name 'w'");
    files_write("x.pb", "\x0a\x05\x0a", 3);
    char *described = archive_describe("x.pb", &defaults);
    CHECK_TEXT(described, "x.pb: offset 1: truncated: a field has more bytes than are left");
    free(described);
}

int main(void)
{
    files_begin();
    check_values();
    check_faults();
    files_remove();
    return check_done();
}
