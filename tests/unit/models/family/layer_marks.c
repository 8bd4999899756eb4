/* Which layers are marked. Expected values: the definition of a period, tried by hand. */
#include "models/family/layer_marks.h"

#include "quant/blocks/dtype.h"
#include "tests/unit/check.h"

#include <math.h>

static void set_numbers(struct gguf_kvs *kvs, const char *key, const int32_t *numbers, size_t n)
{
    struct buffer elements = {0};
    for (size_t i = 0; i < n; i++)
        buffer_append_le(&elements, (uint32_t)numbers[i], 4);
    gguf_set_array(kvs, key, GGUF_I32, n, &elements);
}

static void set_floats(struct gguf_kvs *kvs, const char *key, const float *numbers, size_t n)
{
    struct buffer elements = {0};
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &numbers[i], sizeof bits);
        buffer_append_le(&elements, bits, 4);
    }
    gguf_set_array(kvs, key, GGUF_F32, n, &elements);
}

/* "101": marked, not marked, marked. */
static const char *spelled(const struct layer_marks *marks)
{
    static char text[64];
    for (uint64_t i = 0; i < marks->n; i++)
        text[i] = marks->marked[i] ? '1' : '0';
    text[marks->n] = '\0';
    return text;
}

static void test_keys(struct arena *arena)
{
    struct gguf_kvs kvs = {0};
    struct layer_marks marks;
    set_numbers(&kvs, "heads", (const int32_t[]){0, 2, -1, 4}, 4);
    set_floats(&kvs, "scale", (const float[]){1.5f, -INFINITY, 0, NAN}, 4);
    struct buffer truths = {0};
    buffer_append(&truths, "\1\0\1", 3);
    gguf_set_array(&kvs, "window", GGUF_BOOL, 3, &truths);
    gguf_set_u32(&kvs, "all", 7);
    gguf_set_u32(&kvs, "none", 0);
    gguf_set_bool(&kvs, "truth", true);
    gguf_set_text(&kvs, "text", "a");
    static const struct {
        const char *key;
        uint64_t n_layers;
        const char *expected;
    } rows[] = {{"heads", 4, "0101"}, {"scale", 4, "1000"}, {"window", 3, "101"},
                {"window", 2, "10"},  {"window", 9, "101"}, {"all", 3, "111"},
                {"none", 3, "000"},   {"truth", 2, "11"},   {"all", 0, ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool known = layer_marks_of_key(&kvs, rows[i].key, rows[i].n_layers, arena, &marks);
        CHECK_TEXT(known ? spelled(&marks) : NULL, rows[i].expected);
    }
    CHECK(!layer_marks_of_key(&kvs, "text", 3, arena, &marks));
    CHECK(!layer_marks_of_key(&kvs, "absent", 3, arena, &marks));
    CHECK(!layer_marks_of_key(&kvs, "all", UINT64_MAX, arena, &marks));
    gguf_kvs_free(&kvs);
}

static void test_tensors(struct arena *arena)
{
    struct tensor_set *set = tensor_set_new(arena);
    struct layer_marks marks;
    static const char *const names[] = {"blk.0.a.weight", "blk.2.b.weight", "blk.3.b.weight", "blk.9.b.weight",
                                        "blk.1.b.bias",   "b.weight",       "blk.01.b.weight"};
    const uint64_t shape[] = {1};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        tensor_set_add_view(set, names[i], view_literal(arena, &f32_dtype, 1, shape, "\0\0\0"));
    CHECK(layer_marks_of_tensors(set, "blk.{}.b.weight", 4, arena, &marks));
    CHECK_TEXT(spelled(&marks), "0011");
    CHECK(!layer_marks_of_tensors(set, "blk.{}.b.weight", UINT64_MAX, arena, &marks));
}

static void test_periods(void)
{
    static const struct {
        const char *marks;
        uint64_t period, offset; /* 0: none */
    } rows[] = {{"0101", 2, 1}, {"1010", 2, 0}, {"1111", 1, 0},    {"00010001000", 4, 3},
                {"0010", 4, 2}, {"1", 1, 0},    {"0001001", 0, 0}, {"0110", 0, 0},
                {"0000", 0, 0}, {"", 0, 0},     {"1011", 0, 0},    {"01010110", 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool marked[16];
        uint64_t period = 0, offset = 0, n = strlen(rows[i].marks);
        for (uint64_t k = 0; k < n; k++)
            marked[k] = rows[i].marks[k] == '1';
        bool found = layer_marks_period(&(struct layer_marks){n, marked}, &period, &offset);
        CHECK_NAMED(found == (rows[i].period != 0) &&
                        (!found || (period == rows[i].period && offset == rows[i].offset)),
                    rows[i].marks);
    }
}

int main(void)
{
    struct arena *arena = arena_new();
    test_keys(arena);
    test_tensors(arena);
    test_periods();
    arena_free(arena);
    return check_done();
}
