/* Matrices quantized by groups. Expected values: by hand, from the formats' levels; tests/interop compares whole models
 * with what llmcompressor and mlx-lm wrote. */
#include "quant/pack/grouped.h"
#include "quant/pack/grouped_kernels.h"
#include "quant/views/convert.h"

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
                             nvfp4 = {1, 16, SCALE_OF_TENSOR, CODE_E2M1, 4, 4, false},
                             affine_2 = {1, 64, SCALE_AFFINE, CODE_NATURAL, 2, 2, false},
                             affine_3 = {1, 32, SCALE_AFFINE, CODE_NATURAL, 3, 3, false},
                             affine_4 = {1, 64, SCALE_AFFINE, CODE_NATURAL, 4, 4, false},
                             affine_5 = {1, 64, SCALE_AFFINE, CODE_NATURAL, 5, 5, false},
                             affine_6 = {1, 128, SCALE_AFFINE, CODE_NATURAL, 6, 6, false},
                             affine_8 = {1, 64, SCALE_AFFINE, CODE_NATURAL, 8, 8, false},
                             mlx_mxfp4 = {1, 32, SCALE_CEILED, CODE_E2M1_DOWN, 4, 4, false},
                             mlx_mxfp8 = {1, 32, SCALE_CEILED, CODE_E4M3, 8, 8, false},
                             mlx_nvfp4 = {1, 16, SCALE_E4M3, CODE_E2M1_DOWN, 4, 4, false},
                             comfy_fp8 = {1, 0, SCALE_ALIKE, CODE_E4M3, 8, 8, false},
                             comfy_mxfp8 = {1, 32, SCALE_AT_MOST, CODE_E4M3, 8, 8, false},
                             comfy_nvfp4 = {1, 16, SCALE_BY_ANY_FACTOR, CODE_E2M1_SIGNED, 4, 4, .is_high_first = true},
                             comfy_int8 = {1, 0, SCALE_OF_127, CODE_INTEGER, 8, 8, false};

static struct arena *arena;

static const struct view *f32_matrix(uint64_t rows, uint64_t columns, const float *values)
{
    const uint64_t shape[] = {rows, columns};
    return view_numbers(arena, 2, shape, values);
}

static void read_all(const struct view *view, void *out)
{
    struct error error;
    CHECK(view_read(view, 0, view_units(view), out, &error));
}

static void read_floats(const struct view *view, float *out)
{
    struct error error;
    CHECK(convert_values(view, 0, view->n_elements, out, &error));
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
    read_floats(view_group_scales(arena, matrix, &fp8_rows, NULL), scales);
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
    read_floats(view_group_scales(arena, matrix, &int4_asymmetric, NULL), scales);
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
    struct fused *fused = fused_new(arena, SCALE_OF_TENSOR, &matrix, 1);
    read_floats(view_fused_scale(arena, fused), &global);
    CHECK(global == 2688.f / 2048);
    read_all(view_group_scales(arena, matrix, &nvfp4, fused), found);
    dtype_kernels(dtype_by_name("F8_E4M3")).decode(found, &scale, 1);
    CHECK(scale == 448 && found[1] == 0x76);
}

static float scale_of(struct fused *fused)
{
    float scale;
    read_floats(view_fused_scale(arena, fused), &scale);
    return scale;
}

/* Codes and scales are those of comfy_kitchen 0.2.40. Of zeros, two have no sign: their group has no scale. */
static void check_comfy_fours(void)
{
    float values[2][32] = {{2688, -0.0f, -1200, 300}, {[3] = -0.0f, [16] = 1.5f, -0.75f, -0.0f}}, zeros[16] = {0};
    static const uint8_t codes[2][16] = {{120, 209}, {[8] = 125, 128}}, scales[4] = {126, 0, 0, 40};
    uint8_t found[32];
    const struct view *matrix = f32_matrix(2, 32, *values), *nothing = f32_matrix(1, 16, zeros);
    struct fused *fused = fused_new(arena, SCALE_BY_ANY_FACTOR, &matrix, 1),
                 *of_nothing = fused_new(arena, SCALE_BY_ANY_FACTOR, &nothing, 1);
    read_all(view_group_codes(arena, matrix, &comfy_nvfp4, fused, &u8_dtype), found);
    CHECK(memcmp(found, codes, sizeof codes) == 0);
    read_all(view_group_scales(arena, matrix, &comfy_nvfp4, fused), found);
    CHECK(memcmp(found, scales, sizeof scales) == 0 && scale_of(fused) == 1);
    read_all(view_group_scales(arena, nothing, &comfy_nvfp4, of_nothing), found);
    CHECK(found[0] == 0 && scale_of(of_nothing) == 0);
    read_all(view_group_codes(arena, nothing, &comfy_nvfp4, of_nothing, &u8_dtype), found);
    CHECK(memcmp(found, zeros, 8) == 0);
}

static void check_comfy_eights(void)
{
    float values[2][64] = {{448, -224, [32] = 449}, {[40] = 0x1.8p-118f, -1e-36f}}, scales[2];
    static const float integers[2][4] = {{127, -63.5f, 1.5f, -127}, {0}};
    static const uint8_t exponents[4] = {127, 128, 0, 1};
    static const int8_t rounded[2][4] = {{127, -64, 2, -127}, {0}};
    uint8_t found[128];
    const struct view *matrix = f32_matrix(2, 64, *values);
    read_all(view_group_codes(arena, matrix, &comfy_mxfp8, NULL, dtype_by_name("F8_E4M3")), found);
    CHECK(found[0] == 0x7e && found[1] == 0xf6 && found[32] == 0x76 && found[104] == 0x7c && found[105] == 0xeb);
    read_all(view_group_scales(arena, matrix, &comfy_mxfp8, NULL), found);
    CHECK(memcmp(found, exponents, sizeof exponents) == 0);
    struct fused *fused = fused_new(arena, SCALE_ALIKE, &matrix, 1);
    read_all(view_group_codes(arena, matrix, &comfy_fp8, fused, dtype_by_name("F8_E4M3")), found);
    CHECK(scale_of(fused) == 449.f / 448 && found[32] == 0x7e && found[1] == 0xf6 && found[104] == 0);
    matrix = f32_matrix(2, 4, *integers);
    read_all(view_group_codes(arena, matrix, &comfy_int8, NULL, dtype_by_name("I8")), found);
    CHECK(memcmp(found, rounded, sizeof rounded) == 0);
    read_floats(view_group_scales(arena, matrix, &comfy_int8, NULL), scales);
    CHECK(scales[0] == 1 && scales[1] == 1e-30f);
}

/* Hashes (FNV-1a, 32 bits) of what mx.quantize() of mlx 0.32.4 gives on a CPU: codes, scales, biases. */
static const struct of_mlx {
    const char *dtype;
    const struct grouping *grouping;
    uint32_t hashes[3];
} of_mlx[] = {
    {"F32", &affine_2, {0xd7339f74, 0xaf3b77da, 0x6b334f93}},
    {"F32", &affine_3, {0x90e24a4, 0x1cb53e41, 0xde14961d}},
    {"F32", &affine_4, {0xb891043e, 0xaf4f0cca, 0x6b334f93}},
    {"F32", &affine_5, {0xe9f4fba4, 0xccdc755, 0x6b334f93}},
    {"F32", &affine_6, {0x4c553850, 0xb60dcbeb, 0x2237283b}},
    {"F32", &affine_8, {0x10c30923, 0xa81a5a31, 0x6b334f93}},
    {"F32", &mlx_mxfp4, {0x811a8b2a, 0x96a0ca15, 0}},
    {"F32", &mlx_mxfp8, {0x31014425, 0x5c202bff, 0}},
    {"F32", &mlx_nvfp4, {0xae44564d, 0x5d89f13c, 0}},
    {"BF16", &affine_2, {0x6aaf0218, 0x6c765e79, 0x752b6feb}},
    {"BF16", &affine_3, {0x90e24a4, 0x6697f55e, 0x38f10fcc}},
    {"BF16", &affine_4, {0xeace7afa, 0x6bf3e5d9, 0x752b6feb}},
    {"BF16", &affine_5, {0xd4cc8c0f, 0xa1cb3f31, 0x752b6feb}},
    {"BF16", &affine_6, {0x3784959c, 0xd96aef9, 0xed24d40d}},
    {"BF16", &affine_8, {0x5177c26c, 0x4283aa42, 0x752b6feb}},
    {"BF16", &mlx_mxfp4, {0xa2beeb87, 0xe4a5511a, 0}},
    {"BF16", &mlx_mxfp8, {0xa0d367f6, 0x5c202bff, 0}},
    {"BF16", &mlx_nvfp4, {0xc8229dc3, 0x6e3d5b1c, 0}},
    {"F16", &affine_2, {0x4f1825d0, 0x19115de4, 0x1ff36b0f}},
    {"F16", &affine_3, {0xcf7b9b06, 0x301a843f, 0xf7ac1a22}},
    {"F16", &affine_4, {0x30caf6c8, 0x218c520d, 0x1ff36b0f}},
    {"F16", &affine_5, {0xe2922e3, 0x4fa840d6, 0x1ff36b0f}},
    {"F16", &affine_6, {0x954c2f8e, 0x2eea1527, 0xf939d733}},
    {"F16", &affine_8, {0x1a4129ff, 0x31a49197, 0x1ff36b0f}},
    {"F16", &mlx_mxfp4, {0x8bffb4ef, 0x3e4e419d, 0}},
    {"F16", &mlx_mxfp8, {0x4b0c022a, 0x8250766, 0}},
    {"F16", &mlx_nvfp4, {0xae44564d, 0x5d89f13c, 0}},
};

static uint32_t hash_of(const struct view *view)
{
    uint8_t bytes[1 << 14];
    uint32_t hash = 2166136261u;
    read_all(view, bytes);
    for (uint64_t i = 0; i < view_bytes(view); i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

/* Rows of all kinds: ordinary ones, zeros, one-sided ones, tiny ones, constants, negative zeros. */
static void check_mlx(void)
{
    enum { ROWS = 8, COLUMNS = 256 };
    static float values[ROWS][COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i / COLUMNS][i % COLUMNS] = ldexpf((float)(i % 2003 * 7919 % 2003 - 1001), i % 5 - 12);
    for (int i = 0; i < COLUMNS; i++) {
        values[1][i] = 0;
        values[2][i] = fabsf(values[2][i]);
        values[3][i] = -fabsf(values[3][i]);
        values[4][i] *= 0x1p-20f;
        values[5][i] = 0.0123f;
        values[6][i] = -0.0f;
    }
    for (size_t i = 0; i < sizeof of_mlx / sizeof *of_mlx; i++) {
        const struct of_mlx *row = &of_mlx[i];
        const struct view *matrix = view_convert(arena, f32_matrix(ROWS, COLUMNS, *values), dtype_by_name(row->dtype));
        CHECK(hash_of(view_group_codes(arena, matrix, row->grouping, NULL, dtype_by_name("U32"))) == row->hashes[0]);
        CHECK(hash_of(view_group_scales(arena, matrix, row->grouping, NULL)) == row->hashes[1]);
        if (row->grouping->scale == SCALE_AFFINE)
            CHECK(hash_of(view_group_edges(arena, matrix, row->grouping)) == row->hashes[2]);
    }
}

/* Every range has the bytes of the whole. */
static void check_ranges(const struct grouping *grouping, const struct view *matrix, const char *dtype)
{
    struct error error;
    struct fused *fused = grouping->scale == SCALE_OF_TENSOR ? fused_new(arena, SCALE_OF_TENSOR, &matrix, 1) : NULL;
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

static void check_ranges_of(uint64_t rows, uint64_t columns)
{
    float *values = malloc(rows * columns * sizeof *values);
    for (uint64_t i = 0; i < rows * columns; i++)
        values[i] = ldexpf((float)((int)(i % 2003 * 7919 % 2003) - 1001), (int)(i % 5) - 12);
    const struct view *matrix = f32_matrix(rows, columns, values);
    check_ranges(&fp8_rows, matrix, "F8_E4M3");
    check_ranges(&fp8_blocks, matrix, "F8_E4M3");
    check_ranges(&int3, matrix, "I32");
    check_ranges(&int4, matrix, "I32");
    check_ranges(&int4_bytes, matrix, "I8");
    check_ranges(&int4_asymmetric, matrix, "I32");
    check_ranges(&mxfp4, matrix, "U8");
    check_ranges(&nvfp4, matrix, "U8");
    check_ranges(&affine_3, matrix, "U32");
    check_ranges(&affine_4, matrix, "U32");
    check_ranges(&mlx_mxfp8, matrix, "U32");
    check_ranges(&mlx_nvfp4, matrix, "U32");
    free(values);
}

/* Rows of which a piece has several, and rows of several pieces. */
static void check_all_ranges(void)
{
    check_ranges_of(131, 1664);
    check_ranges_of(2, 2 * 32768 + 128);
}

/* Integers of 8 bits, row by row: compares with their definition. */
static void check_integers(uint64_t rows, uint64_t columns)
{
    float *values = malloc(rows * columns * sizeof *values), *scales = malloc(rows * sizeof *scales);
    int8_t *codes = malloc(rows * columns);
    uint64_t n_wrong = 0;
    for (uint64_t i = 0; i < rows * columns; i++)
        values[i] = (float)((int)(i % 2003 * 7919 % 2003) - 1001);
    const struct view *matrix = f32_matrix(rows, columns, values);
    read_all(view_group_codes(arena, matrix, &int8_rows, NULL, dtype_by_name("I8")), codes);
    read_floats(view_group_scales(arena, matrix, &int8_rows, NULL), scales);
    for (uint64_t row = 0; row < rows; row++) {
        float largest = 0;
        for (uint64_t i = row * columns; i < (row + 1) * columns; i++)
            largest = fmaxf(largest, fabsf(values[i]));
        float scale = largest / 127.5f;
        n_wrong += scales[row] != (scale == 0 ? 0x1p-23f : scale);
        for (uint64_t i = row * columns; i < (row + 1) * columns; i++)
            n_wrong += codes[i] != rintf(fmaxf(-128, fminf(127, values[i] / scales[row])));
    }
    CHECK(n_wrong == 0);
    free(values);
    free(scales);
    free(codes);
}

/* More rows than a piece has groups, rows that do not fill a piece, and rows that are longer than one. */
static void check_rows_together(void)
{
    for (uint64_t columns = 1; columns <= 8; columns++)
        check_integers(20000, columns);
    check_integers(40, 5632);
    check_integers(30, 4999);
    check_integers(3, 40000);
}

/* Zeros of both signs, infinities and NaNs of both signs. */
static void check_extremes(enum cpu_level level)
{
    enum { COLUMNS = 32, GROUPS = 6 };
    static const float expected[GROUPS][2] = {{-2, 3}, {-2, 3},  {-INFINITY, INFINITY},
                                              {0, 0},  {-4, -1}, {INFINITY, -INFINITY}};
    float values[GROUPS][COLUMNS];
    struct range ranges[GROUPS];
    for (int i = 0; i < COLUMNS; i++) {
        values[0][i] = i % 3 == 0 ? -2 : i == 7 ? 3 : 1;
        values[1][i] = i == 9 ? NAN : i == 10 ? -NAN : values[0][i];
        values[2][i] = i == 0 ? INFINITY : i == 31 ? -INFINITY : i == 5 ? NAN : 1;
        values[3][i] = i % 2 == 0 ? 0 : -0.0f;
        values[4][i] = i == 30 ? -4 : i == 2 ? -NAN : -1;
        values[5][i] = i % 2 == 0 ? NAN : -NAN;
    }
    grouped_kernels_at(level)->extremes(*values, GROUPS, COLUMNS, ranges);
    for (int i = 0; i < GROUPS; i++)
        CHECK(memcmp(&ranges[i], expected[i], sizeof ranges[i]) == 0);
}

/* Round to numbers of a type; NaN becomes one that all types have. */
static void round_all(const float *values, size_t n, enum rounding rounding, float *ret_rounded)
{
    for (size_t i = 0; i < n; i++) {
        float value = isnan(values[i]) ? copysignf(NAN, values[i]) : values[i];
        ret_rounded[i] = rounding == ROUND_BF16  ? round_to_bf16(value)
                         : rounding == ROUND_F16 ? round_to_f16(value)
                                                 : values[i];
    }
}

/* Summands are numbers: which of two NaNs a sum keeps depends on the order that a compiler chooses. */
static void check_codes(const struct grouped_kernels *ours, const struct grouped_kernels *portable, const float *values,
                        const float *divisors, const float *summands, size_t n, size_t columns)
{
    uint8_t *codes = malloc(n * columns), *others = malloc(n * columns);
    float *of_type = malloc(n * columns * sizeof *of_type), *dividing = malloc(n * sizeof *dividing);
    for (int rounding = 0; rounding < ROUNDINGS; rounding++) {
        round_all(values, n * columns, (enum rounding)rounding, of_type);
        round_all(divisors, n, (enum rounding)rounding, dividing);
        for (int code = 0; code < QUOTIENT_CODES; code++)
            for (int adds = 0; adds < 2; adds++) {
                const struct quotients quotients = {dividing, adds ? summands : NULL, -8, 7};
                ours->encode[code][rounding](&quotients, of_type, n, columns, codes);
                portable->encode[code][rounding](&quotients, of_type, n, columns, others);
                CHECK(memcmp(codes, others, n * columns) == 0);
            }
    }
    for (float high = 3; high <= 255; high = high * 2 + 1) {
        ours->steps(values, n, columns, summands, divisors, high, codes);
        portable->steps(values, n, columns, summands, divisors, high, others);
        CHECK(memcmp(codes, others, n * columns) == 0);
    }
    free(codes);
    free(others);
    free(of_type);
    free(dividing);
}

/* Every quotient of two mantissas of BF16, with divisors of all magnitudes. */
static void check_quotients_of_bf16(enum cpu_level level)
{
    enum { MANTISSAS = 128, COLUMNS = 6 * MANTISSAS };
    const struct grouped_kernels *ours = grouped_kernels_at(level), *portable = grouped_kernels_at(CPU_PORTABLE);
    float values[COLUMNS];
    uint8_t codes[COLUMNS], others[COLUMNS];
    size_t n_wrong = 0;
    for (int exponent = -140; exponent <= 120; exponent += exponent % 50 == 0 ? 17 : 1)
        for (int mantissa = MANTISSAS; mantissa < 2 * MANTISSAS; mantissa++) {
            float divisor = ldexpf((float)mantissa, exponent);
            for (int i = 0; i < COLUMNS; i++)
                values[i] = ldexpf((float)(i % 2 == 0 ? i % MANTISSAS + MANTISSAS : -(i % MANTISSAS) - MANTISSAS),
                                   exponent + i / MANTISSAS + 2);
            for (int code = QUOTIENT_E4M3; code <= QUOTIENT_INTEGER; code++) {
                const struct quotients quotients = {&divisor, NULL, -128, 127};
                ours->encode[code][ROUND_BF16](&quotients, values, 1, COLUMNS, codes);
                portable->encode[code][ROUND_BF16](&quotients, values, 1, COLUMNS, others);
                n_wrong += memcmp(codes, others, sizeof codes) != 0;
            }
        }
    CHECK(n_wrong == 0);
}

/* E2M1 as mlx defines it: the first level whose distance, rounded, is the least. */
static uint8_t first_nearest(float value, enum rounding rounding)
{
    static const float levels[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    float least = fabsf(value);
    uint8_t nearest = 0;
    for (uint8_t level = 1; level < 8; level++) {
        float distance = fabsf(fabsf(value) - levels[level]), rounded;
        round_all(&distance, 1, rounding, &rounded);
        if (rounded < least) {
            least = rounded;
            nearest = level;
        }
    }
    return (uint8_t)(nearest | (value < 0 && nearest != 0 ? 8 : 0));
}

/* Every BF16 number, and as F32 and F16 its neighbours, too, in groups of similar and of any magnitudes. */
static void check_nearest(enum cpu_level level)
{
    enum { N = 1 << 16, COLUMNS = 32, GROUPS = N / COLUMNS };
    static float numbers[N], values[N], divisors[GROUPS];
    static uint8_t codes[N];
    size_t n_wrong = 0;
    for (int i = 0; i < GROUPS; i++)
        divisors[i] = 1;
    for (uint32_t stride = 1; stride < N; stride += 7918)
        for (uint32_t rounding = 0; rounding < ROUNDINGS; rounding++) {
            for (uint32_t i = 0; i < N; i++) {
                uint32_t bits = (i * stride % N << 16) + (rounding == ROUND_BF16 ? 0 : (i % 3 - 1) << 13);
                memcpy(&numbers[i], &bits, sizeof bits);
            }
            round_all(numbers, N, (enum rounding)rounding, values);
            for (int exact = 0; exact < 2; exact++) {
                const struct quotients quotients = {divisors, NULL, 0, 0};
                enum quotient_code code = exact ? QUOTIENT_E2M1_DOWN_EXACTLY : QUOTIENT_E2M1_DOWN;
                grouped_kernels_at(level)->encode[code][rounding](&quotients, values, GROUPS, COLUMNS, codes);
                for (uint32_t i = 0; i < N; i++)
                    n_wrong += codes[i] != first_nearest(values[i], exact ? ROUND_F32 : (enum rounding)rounding);
            }
        }
    CHECK(n_wrong == 0);
}

/* Values half way between two steps, and up to three floats beyond. Every second eight groups lie far from zero for the
 * size of their steps; in a third of all groups the edge is a whole number of steps from zero. */
static void check_steps(enum cpu_level level, float unit)
{
    enum { COLUMNS = 64, GROUPS = 1024 };
    const struct grouped_kernels *ours = grouped_kernels_at(level), *portable = grouped_kernels_at(CPU_PORTABLE);
    static float values[GROUPS * COLUMNS];
    static uint8_t codes[GROUPS * COLUMNS], others[GROUPS * COLUMNS];
    float edges[GROUPS], divisors[GROUPS];
    uint64_t state = 5;
    for (float high = 3; high <= 255; high = high * 2 + 1) {
        for (int group = 0; group < GROUPS; group++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            float divisor = (1 + (float)(state >> 40) * 0x1p-24f) / high * (group % 2 == 0 ? unit : -unit);
            edges[group] = (float)((int)(state >> 56) - 128) / 64 * (group / 8 % 2 == 0 ? unit : 50 * unit);
            float steps = rintf(edges[group] / divisor);
            divisors[group] = group % 3 == 0 && steps != 0 ? edges[group] / steps : divisor;
            for (int i = 0; i < COLUMNS; i++) {
                float step = (float)(i * ((int)high + 2) / COLUMNS) - 0.5f;
                float value = edges[group] + step * divisors[group];
                for (int j = 0; j < i % 4; j++)
                    value = nextafterf(value, group % 2 == 0 ? INFINITY : -INFINITY);
                values[group * COLUMNS + i] = value;
            }
        }
        ours->steps(values, GROUPS, COLUMNS, edges, divisors, high, codes);
        portable->steps(values, GROUPS, COLUMNS, edges, divisors, high, others);
        CHECK(memcmp(codes, others, sizeof codes) == 0);
    }
}

/* Values whose quotients are normal numbers of E4M3, or a little beyond its largest, none of them zero. One in three is
 * half way between two codes where the divisor is 1, and one half way between two numbers in BF16. */
static void fill_usual(float *values, float *divisors, size_t n, size_t columns)
{
    enum { EXPONENTS = 15, LEAST_EXPONENT = -5 };
    static const struct {
        uint32_t kept, set;
    } ways[] = {{0x780000, 0x80000}, {0x7f0000, 0x8000}, {0x7fffff, 0}};
    uint64_t state = 11;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t bits = (uint32_t)(state >> 41), exponent = (uint32_t)((int)(i % EXPONENTS) + 127 + LEAST_EXPONENT);
        bits = (bits & ways[i % 3].kept) | ways[i % 3].set | exponent << 23 | (uint32_t)(state >> 63) << 31;
        memcpy(&values[i], &bits, sizeof bits);
        divisors[i / columns] = i / columns % 2 == 0 ? 1 : 0.75f + (float)(i / columns % 64) / 128;
    }
}

static void check_kernels(enum cpu_level level)
{
    enum { N = 1 << 16, COLUMNS = 64 };
    const struct grouped_kernels *ours = grouped_kernels_at(level), *portable = grouped_kernels_at(CPU_PORTABLE);
    float *values = malloc(N * sizeof *values), *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
    float divisors[N / COLUMNS], summands[N / COLUMNS];
    struct range ranges[2][N / COLUMNS];
    uint64_t state = 7;
    check_extremes(level);
    check_quotients_of_bf16(level);
    check_nearest(level);
    check_steps(level, 1);
    check_steps(level, 0x1p-126f);
    check_steps(level, 0x1p120f);
    for (int i = 0; i < N; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t bits = (uint32_t)(state >> 32);
        memcpy(&values[i], &bits, sizeof bits);
        if (!isfinite(values[i]) || i % 3 == 0)
            values[i] = (float)((int)(bits >> 20) - 2048) / 64;
        divisors[i / COLUMNS] = values[i] == 0 ? 1 : values[i];
    }
    ours->range(values, N / COLUMNS, COLUMNS, ranges[0]);
    portable->range(values, N / COLUMNS, COLUMNS, ranges[1]);
    CHECK(memcmp(ranges[0], ranges[1], sizeof ranges[0]) == 0);
    ours->extremes(values, N / COLUMNS, COLUMNS, ranges[0]);
    portable->extremes(values, N / COLUMNS, COLUMNS, ranges[1]);
    CHECK(memcmp(ranges[0], ranges[1], sizeof ranges[0]) == 0);
    ours->affine(ranges[0], N / COLUMNS, 15, a, a + N / 2);
    portable->affine(ranges[0], N / COLUMNS, 15, b, b + N / 2);
    CHECK(memcmp(a, b, N / COLUMNS * sizeof *a) == 0 && memcmp(a + N / 2, b + N / 2, N / COLUMNS * sizeof *a) == 0);
    memcpy(summands, values, sizeof summands);
    for (size_t columns = COLUMNS; columns >= 1; columns = columns * 5 / 7) /* also such as no kernel takes at once */
        check_codes(ours, portable, values, divisors, summands, N / COLUMNS, columns);
    fill_usual(a, divisors, N, COLUMNS);
    for (size_t columns = COLUMNS; columns >= 1; columns = columns * 5 / 7)
        check_codes(ours, portable, a, divisors, summands, N / COLUMNS, columns);
    static const uint32_t special[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0x80000000,
                                       0x00000001, 0x80000001, 0x7f7fffff, 0xff7fffff, 0x3f7fffff, 0x3f000000};
    for (size_t i = 0; i < N; i += 5)
        memcpy(&values[i], &special[i % (sizeof special / sizeof *special)], sizeof *values);
    check_codes(ours, portable, values, divisors, summands, N / COLUMNS, COLUMNS);
    free(values);
    free(a);
    free(b);
}

static void check_refusals(void)
{
    static const float values[2][3];
    const uint64_t shape[] = {6};
    struct error error;
    CHECK(!grouped_possible(f32_matrix(2, 3, *values), &int4, &error));
    CHECK(strcmp(error.message, "its 3 columns are not a multiple of 128") == 0);
    CHECK(!grouped_possible(view_numbers(arena, 1, shape, *values), &fp8_rows, &error));
    CHECK(grouped_possible(f32_matrix(2, 3, *values), &fp8_rows, &error));
}

int main(void)
{
    arena = arena_new();
    check_rows();
    check_asymmetric();
    check_fours();
    check_comfy_fours();
    check_comfy_eights();
    check_mlx();
    check_all_ranges();
    check_rows_together();
    for (int level = CPU_PORTABLE; level < CPU_LEVELS; level++)
        if (cpu_runs((enum cpu_level)level))
            check_kernels((enum cpu_level)level);
    check_refusals();
    arena_free(arena);
    return check_done();
}
