/* Matrices quantized by groups. Expected values: by hand, from the formats' levels; tests/interop compares whole models
 * with what llmcompressor wrote. */
#include "quant/grouped.h"
#include "quant/grouped_kernels.h"

#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

static const struct grouping fp8_rows = {1, 0, SCALE_SYMMETRIC, CODE_E4M3, 8, 8, false},
                             fp8_blocks = {128, 128, SCALE_SYMMETRIC, CODE_E4M3, 8, 8, false},
                             int8_rows = {1, 0, SCALE_SYMMETRIC, CODE_INTEGER, 8, 8, false},
                             int3 = {1, 128, SCALE_SYMMETRIC, CODE_INTEGER, 3, 3, true},
                             int4 = {1, 128, SCALE_SYMMETRIC, CODE_INTEGER, 4, 4, true},
                             int4_bytes = {1, 128, SCALE_SYMMETRIC, CODE_INTEGER, 4, 8, false},
                             int4_asymmetric = {1, 128, SCALE_ASYMMETRIC, CODE_INTEGER, 4, 4, true},
                             mxfp4 = {1, 32, SCALE_POWER_OF_TWO, CODE_E2M1, 4, 4, false},
                             nvfp4 = {1, 16, SCALE_OF_TENSOR, CODE_E2M1, 4, 4, false};

static struct arena *arena;

static const struct view *f32_matrix(uint64_t rows, uint64_t columns, const float *values)
{
    const uint64_t shape[] = {rows, columns};
    return view_literal(arena, &f32_dtype, 2, shape, values);
}

static void read_all(const struct view *view, void *out)
{
    struct error error;
    CHECK(view_read(view, 0, view_units(view), out, &error));
}

static void check_rows(void)
{
    static const float eights[2][4] = {{448, -224, 0.015625f, -0.0f}, {0, 0, 0, 0}};
    static const float integers[1][4] = {{127.5f, -127.5f, 0.5f, 1.5f}};
    static const uint8_t codes[] = {0x7e, 0xf6, 0x08, 0x80, 0, 0, 0, 0};
    static const int8_t rounded[] = {127, -128, 0, 2};
    uint8_t found[8];
    float scales[2];
    const struct view *matrix = f32_matrix(2, 4, *eights);
    read_all(view_group_codes(arena, matrix, &fp8_rows, NULL, dtype_by_name("F8_E4M3")), found);
    CHECK(memcmp(found, codes, sizeof codes) == 0);
    read_all(view_group_scales(arena, matrix, &fp8_rows, NULL), scales);
    CHECK(scales[0] == 1 && scales[1] == 0x1p-23f);
    matrix = f32_matrix(1, 4, *integers);
    read_all(view_group_codes(arena, matrix, &int8_rows, NULL, dtype_by_name("I8")), found);
    CHECK(memcmp(found, rounded, sizeof rounded) == 0);
}

static void check_asymmetric(void)
{
    float values[2][128] = {{0}, {0}}, scales[2];
    uint8_t codes[128], zeros[4];
    for (int i = 0; i < 128; i++) {
        values[0][i] = (float)(i % 16);
        values[1][i] = (float)(i % 16) - 5;
    }
    const struct view *matrix = f32_matrix(2, 128, *values);
    const struct view *packed = view_group_codes(arena, matrix, &int4_asymmetric, NULL, &i32_dtype);
    CHECK(packed->shape[0] == 2 && packed->shape[1] == 16);
    read_all(packed, codes);
    for (int i = 0; i < 128; i += 2)
        CHECK(codes[i / 2] == (i % 16 | (i + 1) % 16 << 4) && codes[64 + i / 2] == codes[i / 2]);
    read_all(view_group_scales(arena, matrix, &int4_asymmetric, NULL), scales);
    CHECK(scales[0] == 1 && scales[1] == 1);
    read_all(view_group_zero_points(arena, matrix, &int4_asymmetric), zeros);
    CHECK(zeros[0] == (0 | 5 << 4) && zeros[1] == 0 && zeros[2] == 0 && zeros[3] == 0);
}

static void check_fours(void)
{
    static const float levels[32] = {6, -6, 0.25f, -0.25f, -0.0f, 0.75f, 2.5f, 3.5f, 5, -1.75f, 1.25f};
    static const uint8_t codes[] = {0x7 | 0xf << 4, 0x0 | 0x8 << 4, 0x0 | 0x2 << 4,
                                    0x4 | 0x6 << 4, 0x6 | 0xc << 4, 0x2};
    float large[32] = {7}, values[2][16] = {{2048}, {1024}}, scale, global;
    uint8_t found[16], exponent;
    const struct view *matrix = f32_matrix(1, 32, levels);
    read_all(view_group_codes(arena, matrix, &mxfp4, NULL, &u8_dtype), found);
    CHECK(memcmp(found, codes, sizeof codes) == 0);
    read_all(view_group_scales(arena, matrix, &mxfp4, NULL), &exponent);
    CHECK(exponent == 127);
    read_all(view_group_scales(arena, f32_matrix(1, 32, large), &mxfp4, NULL), &exponent);
    CHECK(exponent == 128);
    matrix = f32_matrix(2, 16, *values);
    struct fused *fused = fused_new(arena, &matrix, 1);
    read_all(view_fused_scale(arena, fused), &global);
    CHECK(global == 2688.f / 2048);
    read_all(view_group_scales(arena, matrix, &nvfp4, fused), found);
    dtype_kernels(dtype_by_name("F8_E4M3")).decode(found, &scale, 1);
    CHECK(scale == 448 && found[1] == 0x76);
}

/* Every range has the bytes of the whole. */
static void check_ranges(const struct grouping *grouping, const struct view *matrix, const char *dtype)
{
    struct error error;
    struct fused *fused = grouping->scale == SCALE_OF_TENSOR ? fused_new(arena, &matrix, 1) : NULL;
    const struct view *views[] = {view_group_codes(arena, matrix, grouping, fused, dtype_by_name(dtype)),
                                  view_group_scales(arena, matrix, grouping, fused)};
    for (int v = 0; v < 2; v++) {
        uint64_t n = view_units(views[v]), unit = views[v]->dtype->block_bytes;
        uint8_t *whole = malloc(n * unit), *part = malloc(n * unit);
        read_all(views[v], whole);
        for (uint64_t first = 0; first < n; first += n / 41 + 1)
            for (uint64_t count = 1; first + count <= n; count = 2 * count + first % 7) {
                CHECK(view_read(views[v], first, count, part, &error));
                CHECK(memcmp(part, whole + first * unit, count * unit) == 0);
            }
        free(whole);
        free(part);
    }
}

static void check_all_ranges(void)
{
    enum { ROWS = 131, COLUMNS = 4352 };
    float *values = malloc(ROWS * COLUMNS * sizeof *values);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = ldexpf((float)(i % 2003 * 7919 % 2003 - 1001), i % 5 - 12);
    const struct view *matrix = f32_matrix(ROWS, COLUMNS, values);
    check_ranges(&fp8_rows, matrix, "F8_E4M3");
    check_ranges(&fp8_blocks, matrix, "F8_E4M3");
    check_ranges(&int3, matrix, "I32");
    check_ranges(&int4, matrix, "I32");
    check_ranges(&int4_bytes, matrix, "I8");
    check_ranges(&int4_asymmetric, matrix, "I32");
    check_ranges(&mxfp4, matrix, "U8");
    check_ranges(&nvfp4, matrix, "U8");
    free(values);
}

static void check_kernels(enum cpu_level level)
{
    enum { N = 1 << 16, COLUMNS = 64 };
    const struct grouped_kernels *ours = grouped_kernels_at(level), *portable = grouped_kernels_at(CPU_PORTABLE);
    float *values = malloc(N * sizeof *values), *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
    float numbers[N / COLUMNS];
    struct range ranges[2][N / COLUMNS];
    uint8_t *codes = malloc(N), *others = malloc(N);
    uint64_t state = 7;
    for (int i = 0; i < N; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t bits = (uint32_t)(state >> 32);
        memcpy(&values[i], &bits, sizeof bits);
        if (!isfinite(values[i]) || i % 3 == 0)
            values[i] = (float)((int)(bits >> 20) - 2048) / 64;
        numbers[i / COLUMNS] = values[i] == 0 ? 1 : values[i];
    }
    ours->range(values, N / COLUMNS, COLUMNS, ranges[0]);
    portable->range(values, N / COLUMNS, COLUMNS, ranges[1]);
    CHECK(memcmp(ranges[0], ranges[1], sizeof ranges[0]) == 0);
    for (int rounding = 0; rounding < ROUNDINGS; rounding++) {
        memcpy(a, values, N * sizeof *a);
        memcpy(b, values, N * sizeof *b);
        ours->divide[rounding](a, N / COLUMNS, COLUMNS, numbers);
        portable->divide[rounding](b, N / COLUMNS, COLUMNS, numbers);
        ours->add[rounding](a, N / COLUMNS, COLUMNS, numbers);
        portable->add[rounding](b, N / COLUMNS, COLUMNS, numbers);
        CHECK(memcmp(a, b, N * sizeof *a) == 0);
    }
    ours->e4m3(values, N, codes);
    portable->e4m3(values, N, others);
    CHECK(memcmp(codes, others, N) == 0);
    ours->e2m1(values, N, codes);
    portable->e2m1(values, N, others);
    CHECK(memcmp(codes, others, N) == 0);
    ours->integer(values, N, -8, 7, codes);
    portable->integer(values, N, -8, 7, others);
    CHECK(memcmp(codes, others, N) == 0);
    free(values);
    free(a);
    free(b);
    free(codes);
    free(others);
}

static void check_refusals(void)
{
    static const float values[2][3];
    const uint64_t shape[] = {6};
    struct error error;
    CHECK(!grouped_possible(f32_matrix(2, 3, *values), &int4, &error));
    CHECK(strcmp(error.message, "its 3 columns are not a multiple of 128") == 0);
    CHECK(!grouped_possible(view_literal(arena, &f32_dtype, 1, shape, values), &fp8_rows, &error));
    CHECK(grouped_possible(f32_matrix(2, 3, *values), &fp8_rows, &error));
}

int main(void)
{
    arena = arena_new();
    check_rows();
    check_asymmetric();
    check_fours();
    check_all_ranges();
    for (int level = CPU_PORTABLE; level <= (int)cpu_level(); level++)
        check_kernels((enum cpu_level)level);
    check_refusals();
    arena_free(arena);
}
