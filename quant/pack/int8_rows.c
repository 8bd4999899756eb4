#include "quant/pack/int8_rows.h"

#include "base/little_endian.h"
#include "quant/views/convert.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static const float LARGEST = 127.0f;

enum { PIECE = 4096 };

struct rows {
    struct view view;
    const struct view *inner;
    uint64_t row; /* elements */
};

/* Extends the largest magnitude by that of a row's piece; NaN and infinity stay. */
static float largest_of(const float *values, size_t n, float largest)
{
    for (size_t i = 0; i < n; i++) {
        float magnitude = fabsf(values[i]);
        largest = magnitude > largest || isnan(magnitude) ? magnitude : largest;
    }
    return largest;
}

static bool read_scale(const struct rows *rows, uint64_t row, float *ret_scale, struct error *error)
{
    float values[PIECE], largest = 0;
    for (uint64_t done = 0; done < rows->row && isfinite(largest);) {
        uint64_t piece = rows->row - done < PIECE ? rows->row - done : PIECE;
        if (!convert_values(rows->inner, row * rows->row + done, piece, values, error))
            return false;
        largest = largest_of(values, piece, largest);
        done += piece;
    }
    if (!isfinite(largest))
        return error_set(error, "row %" PRIu64 " has a weight that is not finite, which has no 8-bit integer", row);
    largest = largest == 0 ? LARGEST : largest < LARGEST / FLT_MAX ? LARGEST / FLT_MAX : largest;
    *ret_scale = LARGEST / largest;
    return true;
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
static bool read_codes_of_row(const struct rows *rows, uint64_t first, uint64_t count, int8_t *out, struct error *error)
{
    float values[PIECE], scale;
    if (!read_scale(rows, first / rows->row, &scale, error))
        return false;
    for (uint64_t done = 0; done < count;) {
        uint64_t piece = count - done < PIECE ? count - done : PIECE;
        if (!convert_values(rows->inner, first + done, piece, values, error))
            return false;
        for (uint64_t i = 0; i < piece; i++)
            out[done + i] = (int8_t)rintf(values[i] * scale);
        done += piece;
    }
    return true;
}

static bool read_codes(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct rows *rows = (const struct rows *)view;
    for (uint64_t done = 0; done < count;) {
        uint64_t rest = rows->row - (first + done) % rows->row, n = count - done < rest ? count - done : rest;
        if (!read_codes_of_row(rows, first + done, n, (int8_t *)out + done, error))
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

static const struct view_op scales_op = {.name = "8-bit row scales", .read = read_scales, .depends = scales_depend};
static const struct view_op codes_op = {
    .name = "8-bit rows", .cost = 1000, .read = read_codes, .depends = codes_depend};

static const struct view *rows_of(struct arena *arena, const struct view *view, const struct view_op *op,
                                  const struct dtype *dtype, unsigned rank)
{
    struct rows *rows = arena_alloc(arena, sizeof *rows);
    assert(view->rank > 1);
    view_init_shared(&rows->view, op, dtype, rank, view->shape);
    rows->view.scattered = view->scattered;
    rows->inner = view;
    rows->row = view->n_elements / (view->shape[0] != 0 ? view->shape[0] : 1);
    return &rows->view;
}

const struct view *view_int8_rows(struct arena *arena, const struct view *view)
{
    return rows_of(arena, view, &codes_op, dtype_by_name("I8"), view->rank);
}

const struct view *view_int8_row_scales(struct arena *arena, const struct view *view)
{
    return rows_of(arena, view, &scales_op, &f32_dtype, 1);
}
