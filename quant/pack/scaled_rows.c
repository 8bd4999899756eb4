#include "quant/pack/scaled_rows.h"

#include "base/little_endian.h"
#include "quant/views/convert.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* The limits of fp8_per_channel_quantize(). */
static const float F8_LARGEST = 448.0f, LEAST_SCALE = 1.0f / (448.0f * 512.0f);

enum { PIECE = 4096 };

struct rows {
    struct view view;
    const struct view *inner;
    uint64_t row; /* elements */
};

/* Limits a value like torch's clamp and amax: NaN stays, and makes its row's scale NaN. */
static float limited(float value)
{
    if (value > SCALED_ROWS_LIMIT)
        return SCALED_ROWS_LIMIT;
    return value < -SCALED_ROWS_LIMIT ? -SCALED_ROWS_LIMIT : value;
}

static bool read_scale(const struct rows *rows, uint64_t row, float *ret_scale, struct error *error)
{
    float values[PIECE], largest = 0;
    for (uint64_t done = 0; done < rows->row;) {
        uint64_t piece = rows->row - done < PIECE ? rows->row - done : PIECE;
        if (!convert_values(rows->inner, row * rows->row + done, piece, values, error))
            return false;
        for (uint64_t i = 0; i < piece; i++) {
            float magnitude = fabsf(limited(values[i]));
            if (magnitude > largest || isnan(magnitude))
                largest = magnitude;
        }
        done += piece;
    }
    *ret_scale = largest / F8_LARGEST < LEAST_SCALE ? LEAST_SCALE : largest / F8_LARGEST;
    return true;
}

static bool read_scales(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    float *scales = out;
    for (uint64_t i = 0; i < count; i++)
        if (!read_scale((const struct rows *)view, first + i, &scales[i], error))
            return false;
    little_endian(scales, count, sizeof *scales);
    return true;
}

/* Rounds to nearest even, like torch. The values are at most 448. */
static uint8_t e4m3_of(float value)
{
    enum { MANTISSA_CUT = 20, BIAS_DIFFERENCE = 127 - 7 };
    uint32_t bits;
    float magnitude = fabsf(value);
    uint8_t sign = signbit(value) ? 0x80 : 0;
    if (isnan(value))
        return sign | 0x7f;
    if (magnitude < 0x1p-6f) /* subnormal: multiples of 2^-9 */
        return sign | (uint8_t)nearbyintf(magnitude * 0x1p9f);
    memcpy(&bits, &magnitude, sizeof bits);
    bits += (UINT32_C(1) << (MANTISSA_CUT - 1)) - 1 + (bits >> MANTISSA_CUT & 1);
    return sign | (uint8_t)((bits >> MANTISSA_CUT) - (BIAS_DIFFERENCE << 3));
}

static bool read_scaled_piece(const struct rows *rows, uint64_t first, uint64_t count, uint8_t *out, float *scale,
                              struct error *error)
{
    float values[PIECE];
    if (!convert_values(rows->inner, first, count, values, error))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        if ((first + i) % rows->row == 0 && !read_scale(rows, (first + i) / rows->row, scale, error))
            return false;
        out[i] = e4m3_of(limited(values[i]) / *scale);
    }
    return true;
}

static bool read_scaled(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct rows *rows = (const struct rows *)view;
    float scale = 0;
    if (count > 0 && !read_scale(rows, first / rows->row, &scale, error))
        return false;
    for (uint64_t done = 0; done < count;) {
        uint64_t piece = count - done < PIECE ? count - done : PIECE;
        if (!read_scaled_piece(rows, first + done, piece, (uint8_t *)out + done, &scale, error))
            return false;
        done += piece;
    }
    return true;
}

static void add_rows(const struct rows *rows, uint64_t row, uint64_t n_rows, struct dependencies *to)
{
    convert_depends(rows->inner, encoding_of(&f32_dtype), row * rows->row, n_rows * rows->row, to);
}

static void scales_depend(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    add_rows((const struct rows *)view, first, count, to);
}

static void scaled_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct rows *rows = (const struct rows *)view;
    add_rows(rows, first / rows->row, (first + count - 1) / rows->row - first / rows->row + 1, to);
}

static const struct view_op scales_op = {.name = "row scales", .read = read_scales, .depends = scales_depend};
static const struct view_op scaled_op = {.name = "scaled rows", .read = read_scaled, .depends = scaled_depends};

static const struct view *rows_of(struct arena *arena, const struct view *view, const struct view_op *op,
                                  const struct dtype *dtype, unsigned rank)
{
    struct rows *rows = arena_alloc(arena, sizeof *rows);
    assert(view->rank > 0);
    view_init_shared(&rows->view, op, dtype, rank, view->shape);
    rows->view.scattered = view->scattered;
    rows->inner = view;
    rows->row = view_row_elements(view);
    return &rows->view;
}

const struct view *view_row_scales(struct arena *arena, const struct view *view)
{
    return rows_of(arena, view, &scales_op, &f32_dtype, view->rank - 1);
}

const struct view *view_scaled_rows(struct arena *arena, const struct view *view)
{
    return rows_of(arena, view, &scaled_op, dtype_by_name("F8_E4M3"), view->rank);
}
