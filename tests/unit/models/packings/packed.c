/* What packings share: parts of a weight, what they are called, what does not fit, and MXFP4 by the table of the OCP's
 * specification. */
#include "models/packings/packed.h"

#include "quant/views/convert.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <math.h>
#include <stdlib.h>

/* A weight of a set that is being put together. */
struct trial {
    struct arena *arena;
    struct tensor_set *set;
    struct json_document *config;
    struct packing_input input;
    struct unpacked unpacked;
    const struct tensor *parts[PACKING_MAX_PARTS];
    struct error error;
    struct packing_key spelling;
    struct packed packed;
};

static void begin(struct trial *trial, const char *config)
{
    struct error error;
    *trial = (struct trial){.arena = arena_new(), .config = json_parse(config, strlen(config), &error)};
    trial->set = tensor_set_new(trial->arena);
    trial->input = (struct packing_input){trial->arena,         trial->set, json_root(trial->config),
                                          "compressed-tensors", &f16_dtype, trial->arena};
    trial->unpacked.parts = trial->parts;
}

static void add(struct trial *trial, const char *name, const char *dtype, uint64_t n_rows, uint64_t n_columns,
                const void *numbers)
{
    const uint64_t shape[] = {n_rows, n_columns};
    tensor_set_add_view(trial->set, name, view_of_numbers(trial->arena, dtype_by_name(dtype), 2, shape, numbers));
}

/* Begins with the first tensor, which ends with `own`. */
static struct packed *seal(struct trial *trial, const char *own)
{
    tensor_set_seal(trial->set, &trial->error);
    trial->spelling = (struct packing_key){.suffix = own, .weight = own};
    trial->packed =
        packed_begin(&trial->input, &trial->set->tensors[0], &trial->spelling, &trial->unpacked, &trial->error);
    return &trial->packed;
}

static void end(struct trial *trial)
{
    json_free(trial->config);
    arena_free(trial->arena);
}

static const unsigned char zeros[1024];

static void test_parts(void)
{
    struct trial trial;
    const struct view *view;
    begin(&trial, "{}");
    add(&trial, "a.weight_packed", "I32", 2, 3, zeros);
    add(&trial, "a.weight_scale", "F16", 2, 1, zeros);
    add(&trial, "a.bad", "F32", 2, 1, zeros);
    tensor_set_edit(trial.set)[2].refusal = "it is broken";
    struct packed *packed = seal(&trial, "_packed");
    CHECK(trial.unpacked.stem == strlen("a.weight"));
    CHECK(packed_find(packed, "_packed", WORDS, &view) && view != NULL && trial.unpacked.n_parts == 0);
    CHECK(packed_find(packed, "_zero", WORDS, &view) && view == NULL);
    CHECK(packed_need(packed, "_zero", WORDS) == NULL);
    CHECK_TEXT(trial.error.message, "'a.weight_zero' is missing");
    CHECK(!packed_find(packed, "_scale", F8 | WORDS, &view) && view == NULL);
    CHECK_TEXT(trial.error.message, "'a.weight_scale' is F16, a type that this packing does not use there");
    CHECK(packed_matrix(packed, "_scale", F16_F32, 3, 1) == NULL);
    CHECK_TEXT(trial.error.message, "'a.weight_scale' is F16 [2, 1], but must be [3, 1]");
    trial.unpacked.n_parts = 0;
    CHECK(packed_matrix(packed, "_scale", F16_F32, 2, 1) != NULL);
    CHECK(trial.unpacked.n_parts == 1 && trial.parts[0] == &trial.set->tensors[1]);
    CHECK(trial.unpacked.name == trial.set->tensors[0].name);
    const struct packing_key ending = {.suffix = "weight_packed", .weight = "values"};
    struct packed other = packed_begin(&trial.input, &trial.set->tensors[0], &ending, &trial.unpacked, &trial.error);
    CHECK_TEXT(trial.unpacked.name, "a.values");
    CHECK(!packed_find(&other, "bad", F16_F32, &view));
    CHECK_TEXT(trial.error.message, "'a.bad': it is broken");
    end(&trial);
}

static void test_integers(void)
{
    static const int32_t words[] = {-1, INT32_MIN, INT32_MAX};
    static const int64_t longs[] = {-1, INT64_MIN};
    int64_t values[3];
    struct trial trial;
    begin(&trial, "{}");
    add(&trial, "a", "I32", 1, 3, words);
    add(&trial, "a.longs", "I64", 2, 1, longs);
    struct packed *packed = seal(&trial, "");
    CHECK(packed_integers(packed, "", WORDS, values, 3));
    CHECK(values[0] == -1 && values[1] == INT32_MIN && values[2] == INT32_MAX);
    CHECK(!packed_integers(packed, "", WORDS, values, 2));
    CHECK_TEXT(trial.error.message, "'a' is I32 [1, 3], but must hold 2 numbers");
    CHECK(!packed_integers(packed, ".longs", I64, values, 1));
    CHECK_TEXT(trial.error.message, "'a.longs' is I64 [2, 1], but must hold 1 number");
    CHECK(!packed_integers(packed, ".axis", I64, values, 1));
    CHECK_TEXT(trial.error.message, "'a.axis' is missing");
    CHECK(packed_integers(packed, ".longs", I64, values, 2));
    CHECK(values[0] == -1 && values[1] == INT64_MIN);
    end(&trial);
}

/* quantization_config, and the columns of a group of 64, and the bits, that it says; -1: an error. */
static void test_numbers(void)
{
    static const struct {
        const char *config;
        int64_t size, bits;
    } rows[] = {
        {"{}", 0, 0},
        {"{\"group\": null, \"bits\": null}", 0, 0},
        {"{\"group\": -1, \"bits\": 1}", 64, 1},
        {"{\"group\": 128, \"bits\": 8}", 128, 8},
        {"{\"group\": 0, \"bits\": 0}", -1, -1},
        {"{\"group\": -2, \"bits\": 9}", -1, -1},
        {"{\"group\": \"32\", \"bits\": 4.0}", -1, -1},
        {"{\"group\": 1e3, \"bits\": true}", -1, -1},
        {"{\"group\": 9223372036854775807, \"bits\": -1}", INT64_MAX, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct trial trial;
        uint64_t number;
        begin(&trial, rows[i].config);
        add(&trial, "a", "I32", 1, 1, zeros);
        struct packed *packed = seal(&trial, "");
        bool good = packed_group_size(packed, "group", 64, &number);
        CHECK_NAMED(good ? (int64_t)number == rows[i].size : rows[i].size == -1, rows[i].config);
        good = packed_bits(packed, "bits", &number);
        CHECK_NAMED(good ? (int64_t)number == rows[i].bits : rows[i].bits == -1, rows[i].config);
        CHECK_NAMED(packed_number(trial.input.config, "bits") == (uint64_t)(rows[i].bits > 0 ? rows[i].bits
                                                                            : i == 5         ? 9
                                                                                             : 0),
                    rows[i].config);
        end(&trial);
    }
}

static void test_groups(void)
{
    static const char *const known[] = {"group", "channel", NULL};
    static const char *const rows[][2] = {
        {"{}", NULL},
        {"{\"config_groups\": []}", NULL},
        {"{\"config_groups\": {\"a\": {\"weights\": {\"strategy\": \"channel\"}}}}", NULL},
        {"{\"config_groups\": {\"a\": {\"weights\": {\"strategy\": \"block\"}}}}", "weights with the strategy 'block'"},
        {"{\"config_groups\": {\"a\": 1}}", "weights with the strategy ''"},
        {"{\"config_groups\": {\"a\": 1, \"b\": 1}}", "several groups of compressed-tensors"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct trial trial;
        begin(&trial, rows[i][0]);
        const char *beyond = packed_beyond_groups(&trial.input, known);
        CHECK_NAMED(beyond == NULL ? rows[i][1] == NULL : rows[i][1] != NULL && strcmp(beyond, rows[i][1]) == 0,
                    rows[i][0]);
        trial.input.method = "fp8";
        CHECK(packed_beyond_groups(&trial.input, known) == NULL);
        end(&trial);
    }
}

static void test_mxfp4(void)
{
    static const float table[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    static const unsigned char exponents[] = {0, 1, 127, 254};
    const uint64_t of_bytes[] = {4, 16}, of_scales[] = {4, 1}, of_blocks[] = {4, 1, 16};
    struct arena *arena = arena_new();
    struct error error;
    unsigned char bytes[64];
    float values[4 * 32], of_ggml[4 * 32];
    for (unsigned i = 0; i < 64; i++) /* all codes, the low half first */
        bytes[i] = (unsigned char)((2 * i) % 16 | (2 * i + 1) % 16 << 4);
    const struct view *rows = view_literal(arena, &u8_dtype, 2, of_bytes, bytes),
                      *scales = view_literal(arena, &u8_dtype, 2, of_scales, exponents);
    const struct view *view = packed_mxfp4(arena, rows, scales);
    CHECK(view->rank == 2 && view->shape[0] == 4 && view->shape[1] == 32 && view->dtype == &f32_dtype);
    CHECK(read_numbers(view, 0, 128, values, &error));
    bool good = true;
    for (unsigned i = 0; i < 128; i++) {
        float expected = ldexpf(table[i % 8], exponents[i / 32] - 127) * (i % 16 < 8 ? 1.0F : -1.0F);
        good = memcmp(&values[i], &expected, sizeof expected) == 0 && good;
    }
    CHECK_NAMED(good, "all codes of MXFP4");
    view = packed_mxfp4_blocks(arena, view_reshape(arena, rows, 3, of_blocks), scales);
    CHECK(view != NULL && view->rank == 2 && view->shape[1] == 32 && strcmp(view->dtype->name, "MXFP4") == 0);
    CHECK(convert_values(view, 0, 128, of_ggml, &error));
    for (unsigned i = 0; i < 128; i++)
        good = of_ggml[i] == values[i] && good; /* whose zeros have no sign */
    CHECK_NAMED(good, "the same as blocks of ggml");
    CHECK(packed_mxfp4_blocks(arena, rows, scales) == NULL);
    CHECK(packed_mxfp4_blocks(arena, view_reshape(arena, rows, 3, of_blocks), view_slice(arena, scales, 0, 0, 3, 1)) ==
          NULL);
    view = packed_cut(arena, rows, 3, 99);
    CHECK(view->shape[0] == 3 && view->shape[1] == 16);
    CHECK(packed_cut(arena, rows, 4, 16) == rows && packed_cut(arena, rows, 9, 2)->shape[1] == 2);
    arena_free(arena);
}

int main(void)
{
    test_parts();
    test_integers();
    test_numbers();
    test_groups();
    test_mxfp4();
    CHECK(rounded_up(0, 32) == 0 && rounded_up(1, 32) == 1 && rounded_up(32, 32) == 1 && rounded_up(33, 32) == 2);
    CHECK(rounded_up(UINT64_MAX, 2) == UINT64_C(1) << 63);
    return check_done();
}
