/* TensorFlow Lite: flatbuffers written by hand, each table after its vtable, references filled in when their targets
 * are appended. */
#include "base/checked.h"

#include "base/little_endian.h"
#include "tests/unit/formats/torch/archive.h"

static const struct open_options defaults;

enum { MODEL_FIELDS = 5, SUBGRAPH_FIELDS = 5, TENSOR_FIELDS = 7, QUANTIZATION_FIELDS = 7, FIELD = 8 };

/* Appends a table of `n` fields of 8 bytes each, and returns where it is. */
static size_t put_table(struct buffer *out, unsigned n)
{
    size_t vtable = out->length;
    buffer_append_le(out, 4 + 2 * n, 2);
    buffer_append_le(out, 4 + FIELD * n, 2);
    for (unsigned i = 0; i < n; i++)
        buffer_append_le(out, 0, 2);
    size_t table = out->length;
    buffer_append_le(out, table - vtable, 4);
    buffer_append_zeros(out, FIELD * n);
    return table;
}

/* Returns the place of a field, which the vtable names from now on. */
static size_t field_at(struct buffer *out, size_t table, unsigned field)
{
    size_t place = 4 + FIELD * field, vtable = table - read_le(out->bytes + table, 4);
    out->bytes[vtable + 4 + 2 * field] = (unsigned char)place;
    return table + place;
}

static void set_number(struct buffer *out, size_t table, unsigned field, uint64_t value)
{
    size_t at = field_at(out, table, field);
    for (unsigned i = 0; i < FIELD; i++)
        out->bytes[at + i] = (unsigned char)(value >> (8 * i));
}

/* Makes the four bytes at `at` refer to the end. */
static void refer(struct buffer *out, size_t at)
{
    uint64_t distance = out->length - at;
    for (unsigned i = 0; i < 4; i++)
        out->bytes[at + i] = (unsigned char)(distance >> (8 * i));
}

/* Appends a vector of `count` elements as the value of a field; returns where its elements are. */
static size_t put_vector(struct buffer *out, size_t table, unsigned field, uint64_t count, const void *bytes,
                         size_t length)
{
    refer(out, field_at(out, table, field));
    buffer_append_le(out, count, 4);
    size_t at = out->length;
    if (bytes != NULL)
        buffer_append(out, bytes, length);
    else
        buffer_append_zeros(out, length);
    return at;
}

static void put_text(struct buffer *out, size_t table, unsigned field, const char *text)
{
    put_vector(out, table, field, strlen(text), text, strlen(text));
}

/* A model of two subgraphs with a tensor each, and three buffers: one of none, one of 8 bytes, one outside. */
struct model {
    struct buffer bytes;
    size_t root, subgraphs[2], tensors[2], buffers[3];
};

static struct model begin(void)
{
    struct model model = {{0}};
    struct buffer *out = &model.bytes;
    buffer_append_zeros(out, 4);
    buffer_append_text(out, "TFL3");
    refer(out, 0);
    out->bytes[0] = (unsigned char)(out->length + 4 + 2 * MODEL_FIELDS);
    model.root = put_table(out, MODEL_FIELDS);
    size_t buffers = put_vector(out, model.root, 4, 3, NULL, 12);
    for (unsigned i = 0; i < 3; i++) {
        refer(out, buffers + 4 * i);
        size_t distance = 4 + 2 * 3; /* the vtable lies before the table */
        out->bytes[buffers + 4 * i] = (unsigned char)(out->bytes[buffers + 4 * i] + distance);
        model.buffers[i] = put_table(out, 3);
    }
    put_vector(out, model.buffers[1], 0, 8, "\1\2\3\4\5\6\7\x88", 8);
    size_t subgraphs = put_vector(out, model.root, 2, 2, NULL, 8);
    for (unsigned i = 0; i < 2; i++) {
        refer(out, subgraphs + 4 * i);
        out->bytes[subgraphs + 4 * i] += 4 + 2 * SUBGRAPH_FIELDS;
        model.subgraphs[i] = put_table(out, SUBGRAPH_FIELDS);
        size_t tensors = put_vector(out, model.subgraphs[i], 0, 1, NULL, 4);
        refer(out, tensors);
        out->bytes[tensors] += 4 + 2 * TENSOR_FIELDS;
        model.tensors[i] = put_table(out, TENSOR_FIELDS);
        put_text(out, model.tensors[i], 3, "w");
    }
    return model;
}

/* Gives a tensor its type, its buffer and one dimension. */
static void set_tensor(struct model *model, unsigned i, unsigned type, unsigned buffer, uint32_t size)
{
    unsigned char bytes[4] = {size & 0xff, size >> 8 & 0xff, size >> 16 & 0xff, (unsigned char)(size >> 24)};
    put_vector(&model->bytes, model->tensors[i], 0, 1, bytes, 4);
    set_number(&model->bytes, model->tensors[i], 1, type);
    set_number(&model->bytes, model->tensors[i], 2, buffer);
}

static void check(struct model *model, const char *says)
{
    files_write("x.tflite", model->bytes.bytes, model->bytes.length);
    char *described = archive_describe("x.tflite", &defaults);
    CHECK_TEXT(described, says);
    free(described);
    buffer_free(&model->bytes);
}

static void check_one(unsigned type, uint32_t size, const char *says)
{
    struct model model = begin();
    set_tensor(&model, 0, type, 1, size);
    check(&model, says);
}

static void check_types(void)
{
    check_one(3, 8, "w U8 [8] 1 2 3 4 5 6 7 136");
    check_one(9, 8, "w I8 [8] 1 2 3 4 5 6 7 -120");
    check_one(7, 4, "w I16 [4] 513 1027 1541 -30713");
    check_one(20, 15, "w U4 [15] 1 0 2 0 3 0 4 0 5 0 6 0 7 0 8");
    check_one(17, 16, "w I4 [16] 1 0 2 0 3 0 4 0 5 0 6 0 7 0 -8 -8");
    check_one(19, 29, "w I2 [29] 1 0 0 0 -2 0 0 0 -1 0 0 0 0 1 0 0 1 1 0 0 -2 1 0 0 -1 1 0 0 0");
    check_one(5, 1, "w U8 [1] (texts and resources have no values)");
    check_one(21, 8, "x.tflite: offset 304: a tensor of an unknown type");
    check_one(3, 7, "x.tflite: offset 304: a tensor in a buffer of 8 bytes, but its shape needs 7");
    check_one(3, UINT32_MAX, "x.tflite: offset 522: a tensor with a negative dimension");
}

static void check_graphs(void)
{
    struct model model = begin();
    set_tensor(&model, 0, 3, 1, 8);
    set_tensor(&model, 1, 3, 1, 8);
    check(&model, "w U8 [8] 1 2 3 4 5 6 7 136"); /* one buffer */
    model = begin();
    set_tensor(&model, 0, 3, 1, 8);
    set_tensor(&model, 1, 3, 2, 2);
    put_text(&model.bytes, model.subgraphs[1], 4, "other");
    set_number(&model.bytes, model.buffers[2], 1, model.bytes.length);
    set_number(&model.bytes, model.buffers[2], 2, 2);
    buffer_append_text(&model.bytes, "AB"); /* behind the flatbuffer */
    check(&model, "w U8 [8] 1 2 3 4 5 6 7 136\nother/w U8 [2] 65 66");
    model = begin();
    set_tensor(&model, 0, 3, 0, 8); /* no buffer: computed */
    check(&model, "x.tflite: a TensorFlow Lite model without weights");
}

static void check_quantization(void)
{
    float scales[] = {0.5f, 0.25f};
    static const char says[] = "{\"scale\": [0.5, 0.25], \"zero_point\": [-1], \"quantized_dimension\": 1}";
    struct model model = begin();
    struct error error;
    little_endian(scales, 2, sizeof *scales);
    set_tensor(&model, 0, 9, 1, 8);
    refer(&model.bytes, field_at(&model.bytes, model.tensors[0], 4));
    model.bytes.bytes[model.tensors[0] + 4 + FIELD * 4] += 4 + 2 * QUANTIZATION_FIELDS;
    size_t table = put_table(&model.bytes, QUANTIZATION_FIELDS);
    put_vector(&model.bytes, table, 2, 2, scales, sizeof scales);
    put_vector(&model.bytes, table, 3, 1, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    set_number(&model.bytes, table, 6, 1);
    files_write("q.tflite", model.bytes.bytes, model.bytes.length);
    buffer_free(&model.bytes);
    const struct checkpoint *checkpoint = checkpoint_open("q.tflite", readers, &defaults, &error);
    struct arena *arena = arena_new();
    size_t length;
    const char *found =
        checkpoint != NULL ? gguf_get_string(&checkpoint->metadata, "w.quantization", arena, &length, &error) : NULL;
    CHECK_TEXT(found != NULL ? found : "", says);
    checkpoint_close(checkpoint);
    arena_free(arena);
}

static void check_faults(void)
{
    struct model model = begin();
    set_tensor(&model, 0, 3, 9, 8);
    check(&model, "x.tflite: offset 70: a tensor in a buffer that is not there");
    model = begin();
    set_tensor(&model, 0, 3, 2, 8);
    set_number(&model.bytes, model.buffers[2], 1, UINT64_MAX);
    set_number(&model.bytes, model.buffers[2], 2, 8);
    check(&model, "x.tflite: offset 168: truncated: a buffer past the end of the file");
    for (size_t length = 8; length < 560; length += 3) { /* cut anywhere: an error or nothing left out */
        model = begin();
        set_tensor(&model, 0, 3, 1, 8);
        model.bytes.length = length < model.bytes.length ? length : model.bytes.length;
        files_write("cut.tflite", model.bytes.bytes, model.bytes.length);
        buffer_free(&model.bytes);
        char *described = archive_describe("cut.tflite", &defaults);
        CHECK(strncmp(described, "cut.tflite: ", 12) == 0 || strcmp(described, "w U8 [8] 1 2 3 4 5 6 7 136") == 0);
        free(described);
    }
    files_write("text.tflite", "text", 4);
    char *described = archive_describe("text.tflite", &defaults);
    CHECK_TEXT(described, "text.tflite: not a TensorFlow Lite model: it does not have 'TFL3' at offset 4");
    free(described);
}

/* A bundle whose stored members are a text and two models. */
static void check_bundle(void)
{
    struct model model = begin();
    set_tensor(&model, 0, 3, 1, 8);
    const struct archive_member members[] = {
        {"METADATA", "text", 4},
        {"TF_LITE_A", (const char *)model.bytes.bytes, model.bytes.length},
        {"TF_LITE_B", (const char *)model.bytes.bytes, model.bytes.length},
    };
    archive_write("two.task", members, 3);
    char *described = archive_describe("two.task", &defaults);
    CHECK_TEXT(described, "TF_LITE_A/w U8 [8] 1 2 3 4 5 6 7 136\nTF_LITE_B/w U8 [8] 1 2 3 4 5 6 7 136");
    free(described);
    archive_write("one.task", members, 2);
    described = archive_describe("one.task", &defaults);
    CHECK_TEXT(described, "w U8 [8] 1 2 3 4 5 6 7 136");
    free(described);
    archive_write("none.task", members, 1);
    described = archive_describe("none.task", &defaults);
    CHECK_TEXT(described, "none.task: a bundle without stored TensorFlow Lite models");
    free(described);
    buffer_free(&model.bytes);
}

int main(void)
{
    files_begin();
    check_types();
    check_graphs();
    check_quantization();
    check_faults();
    check_bundle();
    files_remove();
    return check_done();
}
