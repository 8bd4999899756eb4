#include "quant/pack/scaled_rows.h"

#include "base/little_endian.h"
#include "quant/views/convert.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { PIECE = 4096 };

/* What the rows become. */
struct row_rule {
    /* Gets a row's scale from its largest magnitude, NaN if it has one. Returns false if there is none. */
    bool (*scale)(float largest, float *ret_scale);
    void (*encode)(const float *values, size_t n, float scale, uint8_t *out);
};

struct rows {
    struct view view;
    const struct view *inner;
    const struct row_rule *rule;
    uint64_t row; /* elements */
};

/* 8-bit floats, with the limits of fp8_per_channel_quantize(). */

static const float F8_LARGEST = 448.0f, LEAST_SCALE = 1.0f / (448.0f * 512.0f);

/* Limits a value like torch's clamp and amax: NaN stays, and makes its row's scale NaN. */
static float limited(float value)
{
    if (value > SCALED_ROWS_LIMIT)
        return SCALED_ROWS_LIMIT;
    return value < -SCALED_ROWS_LIMIT ? -SCALED_ROWS_LIMIT : value;
}

static bool f8_scale(float largest, float *ret_scale)
{
    float scale = limited(largest) / F8_LARGEST;
    *ret_scale = scale < LEAST_SCALE ? LEAST_SCALE : scale;
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

static void f8_encode(const float *values, size_t n, float scale, uint8_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = e4m3_of(limited(values[i]) / scale);
}

static const struct row_rule f8 = {f8_scale, f8_encode};

/* 8-bit integers. */

static const float INT8_LARGEST = 127.0f;

static bool int8_scale(float largest, float *ret_scale)
{
    const float least = INT8_LARGEST / FLT_MAX;
    if (!isfinite(largest))
        return false;
    *ret_scale = largest == 0 ? 1 : INT8_LARGEST / (largest < least ? least : largest);
    return true;
}

static void int8_encode(const float *values, size_t n, float scale, uint8_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(int8_t)rintf(values[i] * scale);
}

static const struct row_rule int8 = {int8_scale, int8_encode};

/* Both. */

static bool read_scale(const struct rows *rows, uint64_t row, float *ret_scale, struct error *error)
{
    float values[PIECE], largest = 0;
    for (uint64_t done = 0; done < rows->row;) {
        uint64_t piece = rows->row - done < PIECE ? rows->row - done : PIECE;
        if (!convert_values(rows->inner, row * rows->row + done, piece, values, error))
            return false;
        for (uint64_t i = 0; i < piece; i++) {
            float magnitude = fabsf(values[i]);
            if (magnitude > largest || isnan(magnitude))
                largest = magnitude;
        }
        done += piece;
    }
    return rows->rule->scale(largest, ret_scale) ||
           error_set(error, "row %" PRIu64 " has a weight that is not finite, which has no 8-bit integer", row);
}

static bool read_scales(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    float scale;
    for (uint64_t i = 0; i < count; i++) {
        if (!read_scale((const struct rows *)view, first + i, &scale, error))
            return false;
        memcpy((unsigned char *)out + i * sizeof scale, &scale, sizeof scale);
    }
    little_endian(out, count, sizeof scale);
    return true;
}

/* Reads elements of one row. */
static bool read_of_row(const struct rows *rows, uint64_t first, uint64_t count, uint8_t *out, struct error *error)
{
    float values[PIECE], scale;
    if (!read_scale(rows, first / rows->row, &scale, error))
        return false;
    for (uint64_t done = 0; done < count;) {
        uint64_t piece = count - done < PIECE ? count - done : PIECE;
        if (!convert_values(rows->inner, first + done, piece, values, error))
            return false;
        rows->rule->encode(values, piece, scale, out + done);
        done += piece;
    }
    return true;
}

static bool read_codes(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct rows *rows = (const struct rows *)view;
    for (uint64_t done = 0; done < count;) {
        uint64_t rest = rows->row - (first + done) % rows->row, n = count - done < rest ? count - done : rest;
        if (!read_of_row(rows, first + done, n, (uint8_t *)out + done, error))
            return false;
        done += n;
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

static void codes_depend(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct rows *rows = (const struct rows *)view;
    add_rows(rows, first / rows->row, (first + count - 1) / rows->row - first / rows->row + 1, to);
}

static const struct view_op scales_op = {.name = "row scales", .read = read_scales, .depends = scales_depend},
                            codes_op = {
                                .name = "scaled rows", .cost = 1000, .read = read_codes, .depends = codes_depend};

/* Makes a view with the first `rank` axes of `view`, whose rows have `row` elements. */
static const struct view *rows_of(struct arena *arena, const struct view *view, const struct row_rule *rule,
                                  uint64_t row, const struct view_op *op, const struct dtype *dtype, unsigned rank)
{
    struct rows *rows = arena_alloc(arena, sizeof *rows);
    view_init_shared(&rows->view, op, dtype, rank, view->shape);
    rows->view.scattered = view->scattered;
    rows->inner = view;
    rows->rule = rule;
    rows->row = row;
    return &rows->view;
}

static uint64_t below_first_axis(const struct view *view)
{
    assert(view->rank > 1);
    return view->n_elements / (view->shape[0] != 0 ? view->shape[0] : 1);
}

const struct view *view_row_scales(struct arena *arena, const struct view *view)
{
    assert(view->rank > 0);
    return rows_of(arena, view, &f8, view_row_elements(view), &scales_op, &f32_dtype, view->rank - 1);
}

const struct view *view_scaled_rows(struct arena *arena, const struct view *view)
{
    assert(view->rank > 0);
    return rows_of(arena, view, &f8, view_row_elements(view), &codes_op, dtype_by_name("F8_E4M3"), view->rank);
}

const struct view *view_int8_row_scales(struct arena *arena, const struct view *view)
{
    return rows_of(arena, view, &int8, below_first_axis(view), &scales_op, &f32_dtype, 1);
}

const struct view *view_int8_rows(struct arena *arena, const struct view *view)
{
    return rows_of(arena, view, &int8, below_first_axis(view), &codes_op, dtype_by_name("I8"), view->rank);
}
