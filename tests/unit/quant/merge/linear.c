/* Linear merges, and one model times a number. Expected values: exact fractions in Python, rounded after each
 * operation.
 */
#include "quant/merge/merge.h"

#include "quant/views/combine.h"
#include "quant/views/convert.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <math.h>
#include <string.h>

enum { N = 13, MODELS = 3, MANY = 40001 };

static float number(int model, int i)
{
    return (float)((i * 7919 + model * 104729) % 10007 - 5003) / 16384;
}

static struct merge_operands operands_of(struct arena *arena, const struct dtype *dtype, uint64_t n)
{
    static const double weights[MODELS] = {0.5, 0.3, 0.2};
    struct merge_model *models = arena_array(arena, MODELS, sizeof *models);
    for (int model = 0; model < MODELS; model++) {
        float *values = arena_array(arena, n, sizeof *values);
        for (uint64_t i = 0; i < n; i++)
            values[i] = number(model, (int)i);
        models[model] =
            (struct merge_model){view_numbers(arena, 1, &n, values), .weight = weights[model], .scale = 0.7};
    }
    return (struct merge_operands){.dtype = dtype, .models = models, .n_models = MODELS, .normalize = true};
}

static void check_values(const struct view *view, const float expected[N])
{
    float values[N];
    struct error error;
    CHECK(convert_values(view, 0, N, values, &error));
    for (int i = 0; i < N; i++)
        CHECK(values[i] == expected[i]);
}

static void check_sums(struct arena *arena)
{
    static const float in_f32[N] = {
        -0x1.b36cccp-4f, 0x1.257332p-4f, -0x1.c9199cp-5f, -0x1.9972e4p-18f, -0x1.050332p-3f,
        0x1.619998p-3f,  0x1.726666p-5f, -0x1.50cccep-4f, -0x1.b11998p-6f,  -0x1.3b2334p-3f,
        0x1.2b799ap-3f,  0x1.33cccap-6f, 0x1.31799ap-4f,
    };
    static const float in_bf16[N] = {
        -0x1.b2p-4f, 0x1.24p-4f,  -0x1.c8p-5f, -0x1.34p-12f, -0x1.04p-3f, 0x1.62p-3f, 0x1.72p-5f,
        -0x1.52p-4f, -0x1.b4p-6f, -0x1.3cp-3f, 0x1.2cp-3f,   0x1.34p-6f,  0x1.3p-4f,
    };
    struct merge_operands operands = operands_of(arena, &f32_dtype, N);
    check_values(merge_linear(arena, &operands), in_f32);
    operands.dtype = &bf16_dtype;
    check_values(merge_linear(arena, &operands), in_bf16);
}

/* The weights' sum divides: 0.9 of two equal models. A weight of 0 lets infinities through. */
static void check_weights(struct arena *arena)
{
    static const float values[3] = {3, INFINITY, -1}, small[3] = {1, 2, 0x1p-140f};
    const uint64_t three = 3;
    struct merge_model models[2] = {{view_numbers(arena, 1, &three, values), .weight = 0},
                                    {view_numbers(arena, 1, &three, small), .weight = 4}};
    struct merge_operands operands = {.dtype = &f32_dtype, .models = models, .n_models = 2};
    float read[3];
    struct error error;
    CHECK(read_numbers(merge_linear(arena, &operands), 0, 3, read, &error));
    CHECK(read[0] == 4 && isnan(read[1]) && read[2] == 0x1p-138f);
    operands.normalize = true;
    CHECK(read_numbers(merge_linear(arena, &operands), 0, 3, read, &error));
    CHECK(read[0] == 1 && isnan(read[1]) && read[2] == 0x1p-140f);
}

/* Models in BF16 are added up as those that are rounded to it. */
static void check_bf16(struct arena *arena)
{
    static unsigned char stored[2 * MANY], rounded[2 * MANY];
    struct merge_operands operands = operands_of(arena, &bf16_dtype, MANY);
    struct merge_model models[MODELS];
    struct error error;
    CHECK(read_numbers(merge_linear(arena, &operands), 0, MANY, rounded, &error));
    memcpy(models, operands.models, sizeof models);
    for (int i = 0; i < MODELS; i++) {
        unsigned char *numbers = arena_alloc(arena, 2 * MANY);
        CHECK(convert_read(models[i].view, encoding_of(&bf16_dtype), 0, MANY, numbers, &error));
        models[i].view = view_literal(arena, &bf16_dtype, 1, models[i].view->shape, numbers);
    }
    operands.models = models;
    CHECK(read_numbers(merge_linear(arena, &operands), 0, MANY, stored, &error));
    CHECK(memcmp(stored, rounded, sizeof stored) == 0);
}

static void check_scaled(struct arena *arena)
{
    static const float doubled[4] = {2, -1, 0, 0.125f};
    const uint64_t four = 4;
    struct merge_model model = {view_numbers(arena, 1, &four, doubled), .scale = 0.7071067811865476};
    struct merge_operands operands = {.dtype = &bf16_dtype, .models = &model, .n_models = 1};
    float read[4];
    struct error error;
    CHECK(convert_values(merge_scaled(arena, &operands), 0, 4, read, &error));
    CHECK(read[0] == 0x1.6ap+0f && read[1] == -0x1.6ap-1f && read[2] == 0 && read[3] == 0x1.6ap-4f);
}

/* Ranges, aligned or not, are those of the whole. */
static void check_ranges(struct arena *arena)
{
    struct merge_operands operands = operands_of(arena, &bf16_dtype, MANY);
    const struct view *view = merge_linear(arena, &operands);
    static unsigned char whole[2 * MANY], part[2 * MANY + 1];
    struct error error;
    CHECK(read_numbers(view, 0, MANY, whole, &error));
    for (uint64_t first = 0; first < MANY; first += 2503) {
        CHECK(read_numbers(view, first, MANY - first, part + 1, &error));
        CHECK(memcmp(part + 1, whole + 2 * first, 2 * (MANY - first)) == 0);
    }
}

int main(void)
{
    struct arena *arena = arena_new();
    check_sums(arena);
    check_weights(arena);
    check_bf16(arena);
    check_scaled(arena);
    check_ranges(arena);
    arena_free(arena);
    return check_done();
}
