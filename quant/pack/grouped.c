#include "quant/pack/grouped.h"

#include "base/checked.h"
#include "quant/pack/group_scales.h"
#include "quant/views/convert.h"
#include "quant/views/dependencies.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = GROUPED_PIECE,
    LEAST_COLUMNS = 8, /* of groups that a piece has several of */
    MOST_GROUPS = PIECE / LEAST_COLUMNS,
    WORD_BITS = 32,
};

struct grouped {
    struct view view;
    const struct view *inner;
    const struct grouping *grouping;
    struct fused *fused;
    uint64_t n_rows, n_columns, columns; /* of the matrix; columns of a group */
    enum rounding rounding;
};

bool grouped_possible(const struct view *matrix, const struct grouping *grouping, struct error *error)
{
    enum rounding rounding;
    if (matrix->rank != 2 || matrix->n_elements == 0)
        return error_set(error, "only matrices are quantized");
    if (!group_rounding(matrix->dtype, &rounding))
        return error_set(error, "it is %s, and only F32, BF16 and F16 are quantized", matrix->dtype->name);
    if (grouping->columns != 0 && matrix->shape[1] % grouping->columns != 0)
        return error_set(error, "its %" PRIu64 " columns are not a multiple of %" PRIu32, matrix->shape[1],
                         grouping->columns);
    return true;
}

static uint64_t groups_across(const struct grouped *grouped)
{
    return grouped->n_columns / grouped->columns;
}

/* The range of groups. */

static bool read_values(const struct grouped *grouped, uint64_t row, uint64_t column, size_t n, float *values,
                        struct error *error)
{
    return convert_values(grouped->inner, row * grouped->n_columns + column, n, values, error);
}

/* Returns the function for the range that scales are found from. */
static void (*range_kernel(const struct grouped *grouped))(const float *, size_t, size_t, struct range *)
{
    return grouped->grouping->scale == SCALE_AFFINE ? grouped_kernels()->extremes : grouped_kernels()->range;
}

/* Extends the ranges of groups of one row by its values. */
static bool extend_by_row(const struct grouped *grouped, uint64_t row, uint64_t first, size_t n, struct range *ranges,
                          struct error *error)
{
    _Alignas(64) float values[PIECE];
    struct range of_piece[MOST_GROUPS];
    uint64_t end = (first + n) * grouped->columns;
    for (uint64_t column = first * grouped->columns; column < end;) {
        size_t count = end - column < PIECE ? end - column : PIECE;
        size_t columns = count < grouped->columns ? count : grouped->columns;
        if (!read_values(grouped, row, column, count, values, error))
            return false;
        range_kernel(grouped)(values, count / columns, columns, of_piece);
        for (size_t i = 0; i < count / columns; i++)
            range_extend(&ranges[column / grouped->columns - first + i], &of_piece[i]);
        column += count;
    }
    return true;
}

/* Gets the ranges of `n` groups next to each other. */
static bool read_ranges(const struct grouped *grouped, uint64_t down, uint64_t first, size_t n, struct range *ranges,
                        struct error *error)
{
    uint64_t row = down * grouped->grouping->rows, rest = grouped->n_rows - row;
    uint64_t end = row + (grouped->grouping->rows < rest ? grouped->grouping->rows : rest);
    bool counts_zero = grouped->grouping->scale != SCALE_AFFINE;
    for (size_t i = 0; i < n; i++)
        ranges[i] = counts_zero ? (struct range){0} : (struct range){INFINITY, -INFINITY};
    for (; row < end; row++)
        if (!extend_by_row(grouped, row, first, n, ranges, error))
            return false;
    return true;
}

/* Reports whether a piece has whole groups, each beginning with a byte of its own, so that one read of the values gives
 * scales and codes. */
static bool fits_piece(const struct grouped *grouped)
{
    const struct grouping *grouping = grouped->grouping;
    bool has_bytes = grouping->width == 8 || grouped->columns % 8 == 0;
    return grouping->rows == 1 && has_bytes && grouped->columns >= LEAST_COLUMNS && grouped->columns <= PIECE;
}

/* Returns how many values are read at once: whole groups if they fit. */
static size_t piece_of(const struct grouped *grouped)
{
    return fits_piece(grouped) ? PIECE / grouped->columns * grouped->columns : PIECE;
}

/* Finds the scales of whole groups from their values. */
static bool scale_piece(const struct grouped *grouped, const float *values, size_t n, struct scale *scales,
                        struct error *error)
{
    struct range ranges[MOST_GROUPS];
    assert(n / grouped->columns <= sizeof ranges / sizeof *ranges);
    range_kernel(grouped)(values, n / grouped->columns, grouped->columns, ranges);
    return group_scales(grouped->grouping, grouped->rounding, grouped->fused, ranges, n / grouped->columns, scales,
                        error);
}

/* Reads the scales of `n` groups next to each other in a row. */
static bool read_scales_of_pieces(const struct grouped *grouped, uint64_t row, uint64_t first, size_t n,
                                  struct scale *scales, struct error *error)
{
    _Alignas(64) float values[PIECE];
    for (size_t done = 0, most = piece_of(grouped) / grouped->columns; done < n;) {
        size_t count = n - done < most ? n - done : most, n_values = count * grouped->columns;
        if (!read_values(grouped, row, (first + done) * grouped->columns, n_values, values, error) ||
            !scale_piece(grouped, values, n_values, scales + done, error))
            return false;
        done += count;
    }
    return true;
}

/* Reads the scales of `n` groups next to each other. */
static bool read_group_scales(const struct grouped *grouped, uint64_t down, uint64_t first, size_t n,
                              struct scale *scales, struct error *error)
{
    if (fits_piece(grouped))
        return read_scales_of_pieces(grouped, down, first, n, scales, error);
    struct range *ranges = memory_alloc(n * sizeof *ranges);
    bool good = read_ranges(grouped, down, first, n, ranges, error) &&
                group_scales(grouped->grouping, grouped->rounding, grouped->fused, ranges, n, scales, error);
    free(ranges);
    return good;
}

/* Codes. */

/* The scales of groups that are larger than a piece, or that several rows share: of one row of groups at a time, from
 * group `first` on. */
struct reached {
    uint64_t down, first; /* down UINT64_MAX: none yet */
    size_t n;
    struct scale *scales;
};

/* Returns the matrix as a single row, if groups and codes of a row end where the next begin: short rows are read
 * together then. */
static struct grouped in_one_row(const struct grouped *grouped)
{
    struct grouped flat = *grouped;
    if (!fits_piece(grouped) || grouped->n_columns * grouped->grouping->width % WORD_BITS != 0)
        return flat;
    flat.n_columns *= flat.n_rows;
    flat.n_rows = 1;
    return flat;
}

static enum quotient_code quotient_code(const struct grouping *grouping)
{
    switch (grouping->code) {
    case CODE_E4M3:
        return QUOTIENT_E4M3;
    case CODE_E2M1:
    case CODE_E2M1_SIGNED:
        return QUOTIENT_E2M1;
    case CODE_E2M1_DOWN:
        return grouping->scale == SCALE_E4M3 ? QUOTIENT_E2M1_DOWN_EXACTLY : QUOTIENT_E2M1_DOWN;
    default:
        return QUOTIENT_INTEGER;
    }
}

/* Some integers are stored as numbers from 0 on. */
static void store_integers(const struct grouping *grouping, size_t n, uint8_t *codes)
{
    uint8_t mask = (uint8_t)((1 << grouping->width) - 1);
    uint8_t offset = grouping->is_offset ? (uint8_t)(1 << (grouping->bits - 1)) : 0;
    for (size_t i = 0; i < n; i++)
        codes[i] = (codes[i] + offset) & mask;
}

/* Gives codes of 4 bits the signs of their values, those of zeros too, where there is a scale. */
static void keep_signs(const float *values, const float *divisors, size_t n_groups, size_t columns, uint8_t *codes)
{
    for (size_t group = 0; group < n_groups; group++)
        for (size_t i = group * columns; isfinite(divisors[group]) && i < (group + 1) * columns; i++)
            codes[i] |= (uint8_t)(signbit(values[i]) != 0) << 3;
}

/* Encodes `n` values of one row, whole groups or parts of one, into a code a byte. */
static void encode(const struct grouped *grouped, const struct scale *scales, const float *values, size_t n,
                   uint8_t *codes)
{
    const struct grouping *grouping = grouped->grouping;
    size_t columns = n < grouped->columns ? n : grouped->columns, n_groups = n / columns;
    enum rounding rounding = scale_needs_fused(grouping->scale) ? ROUND_F32 : grouped->rounding;
    float divisors[MOST_GROUPS], zero_points[MOST_GROUPS], lowest = -(float)(1 << (grouping->bits - 1));
    bool adds = grouping->scale == SCALE_ASYMMETRIC || grouping->adds_zero;
    for (size_t i = 0; i < n_groups; i++) {
        divisors[i] = scales[i].divisor;
        zero_points[i] = scales[i].zero_point;
    }
    if (grouping->code == CODE_NATURAL) {
        grouped_kernels()->steps(values, n_groups, columns, zero_points, divisors, (float)((1 << grouping->bits) - 1),
                                 codes);
        return;
    }
    const struct quotients quotients = {divisors, adds ? zero_points : NULL, lowest, -1 - lowest};
    grouped_kernels()->encode[quotient_code(grouping)][rounding](&quotients, values, n_groups, columns, codes);
    if (grouping->code == CODE_E2M1_SIGNED)
        keep_signs(values, divisors, n_groups, columns, codes);
    if (grouping->code == CODE_INTEGER)
        store_integers(grouping, n, codes);
}

/* Appends codes, eight at a time, to a string of bits; `n` codes, and zeros up to a whole byte. */
static void pack(const uint8_t *codes, size_t n, unsigned bits, uint8_t *bytes)
{
    enum { TOGETHER = 8 };
    if (bits == 8)
        memcpy(bytes, codes, n);
    else if (bits == 4 && n % TOGETHER == 0)
        for (size_t i = 0; i < n / 2; i++)
            bytes[i] = (uint8_t)(codes[2 * i] | codes[2 * i + 1] << 4);
    if (bits == 8 || (bits == 4 && n % TOGETHER == 0))
        return;
    for (size_t i = 0; i < n; i += TOGETHER) {
        uint64_t word = 0;
        for (size_t k = 0; k < TOGETHER && i + k < n; k++)
            word |= (uint64_t)codes[i + k] << k * bits;
        for (unsigned k = 0; k < bits; k++)
            bytes[i / TOGETHER * bits + k] = (uint8_t)(word >> 8 * k);
    }
}

static uint64_t bytes_of_codes(const struct grouped *grouped, uint64_t n)
{
    unsigned width = grouped->grouping->width;
    return width == 8 ? n : (n + 7) / 8 * width;
}

static void swap_halves(uint8_t *bytes, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(bytes[i] << 4 | bytes[i] >> 4);
}

/* Encodes the `n` values from `column` on, at most PIECE, into bytes. */
static bool read_piece(const struct grouped *grouped, const struct reached *reached, uint64_t row, uint64_t column,
                       size_t n, uint8_t *bytes, struct error *error)
{
    _Alignas(64) float values[PIECE];
    _Alignas(64) uint8_t codes[PIECE];
    struct scale of_piece[MOST_GROUPS], *scales = of_piece;
    if (!read_values(grouped, row, column, n, values, error))
        return false;
    if (reached->scales != NULL)
        scales = &reached->scales[column / grouped->columns - reached->first];
    else if (!scale_piece(grouped, values, n, of_piece, error))
        return false;
    encode(grouped, scales, values, n, codes);
    pack(codes, n, grouped->grouping->width, bytes);
    if (grouped->grouping->is_high_first)
        swap_halves(bytes, bytes_of_codes(grouped, n));
    return true;
}

/* Reads bytes [from, to) of the codes of a row. Pieces begin with a byte of their own, and with a group if they find
 * its scale. */
static bool read_codes_of_row(const struct grouped *grouped, const struct reached *reached, uint64_t row, uint64_t from,
                              uint64_t to, uint8_t *out, struct error *error)
{
    uint8_t bytes[PIECE];
    size_t piece = piece_of(grouped);
    uint64_t group = grouped->grouping->rows == 1 && !fits_piece(grouped) ? 8 : grouped->columns;
    uint64_t column = from / grouped->grouping->width * 8 / group * group;
    while (from < to) {
        uint64_t codes = rounded_up(to * 8, grouped->grouping->width);
        uint64_t wanted = rounded_up(codes - column, group) * group;
        uint64_t rest = grouped->n_columns - column;
        size_t n = wanted < rest ? wanted : rest;
        n = n < piece ? n : piece;
        uint64_t begin = bytes_of_codes(grouped, column), end = begin + bytes_of_codes(grouped, n);
        bool is_whole = begin == from && end <= to;
        if (!read_piece(grouped, reached, row, column, n, is_whole ? out : bytes, error))
            return false;
        end = end < to ? end : to;
        if (!is_whole)
            memcpy(out, bytes + (from - begin), end - from);
        out += end - from;
        from = end;
        column += n;
    }
    return true;
}

/* Reads bytes [from, to) of a row, which is zero beyond its codes. */
static bool read_row(const struct grouped *grouped, struct reached *reached, uint64_t row, uint64_t from, uint64_t to,
                     uint8_t *out, struct error *error)
{
    uint64_t down = row / grouped->grouping->rows, code_bytes = bytes_of_codes(grouped, grouped->n_columns);
    uint64_t end = to < code_bytes ? to : code_bytes;
    if (reached->scales != NULL && reached->down != down &&
        !read_group_scales(grouped, down, reached->first, reached->n, reached->scales, error))
        return false;
    reached->down = down;
    uint64_t begin = from < end ? end : from;
    memset(out + (begin - from), 0, to - begin);
    return from >= end || read_codes_of_row(grouped, reached, row, from, end, out, error);
}

/* Makes room for the scales of the groups that hold codes [from, to) of a row. */
static struct reached reach(const struct grouped *grouped, uint64_t from, uint64_t to)
{
    uint64_t most = groups_across(grouped) - 1, first = from / grouped->columns, last = to / grouped->columns;
    last = last < most ? last : most;
    first = first < last ? first : last;
    return (struct reached){UINT64_MAX, first, last - first + 1,
                            memory_alloc((last - first + 1) * sizeof(struct scale))};
}

static bool read_codes(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct grouped flat = in_one_row((const struct grouped *)view), *grouped = &flat;
    unsigned unit = view->dtype->block_bytes, bits = grouped->grouping->width;
    uint64_t rows_together = view->shape[0] / grouped->n_rows;
    uint64_t width = rows_together * view->shape[1] * unit, begin = first * unit, end = begin + count * unit;
    bool in_one_row = count == 0 || begin / width == (end - 1) / width;
    struct reached reached = {.down = UINT64_MAX};
    uint8_t *to = out;
    bool good = true;
    if (!fits_piece(grouped))
        reached = reach(grouped, in_one_row ? begin % width / bits * 8 : 0,
                        in_one_row ? (begin % width + (end - begin)) / bits * 8 + 8 : grouped->n_columns);
    while (good && begin < end) {
        uint64_t row = begin / width, row_end = (row + 1) * width, stop = row_end < end ? row_end : end;
        good = read_row(grouped, &reached, row, begin - row * width, stop - row * width, to, error);
        to += stop - begin;
        begin = stop;
    }
    free(reached.scales);
    return good;
}

static void rows_depend(const struct grouped *grouped, uint64_t row, uint64_t n_rows, struct dependencies *to)
{
    uint64_t rest = grouped->n_rows - row;
    convert_depends(grouped->inner, encoding_of(&f32_dtype), row * grouped->n_columns,
                    (n_rows < rest ? n_rows : rest) * grouped->n_columns, to);
}

/* Names whole rows of groups. */
static void codes_depend(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct grouped *grouped = (const struct grouped *)view;
    uint64_t rows = grouped->grouping->rows, down = first / view->shape[1] / rows;
    uint64_t last = (first + count - 1) / view->shape[1] / rows;
    rows_depend(grouped, down * rows, (last - down + 1) * rows, to);
    if (grouped->fused != NULL)
        fused_depend(grouped->fused, to);
}

/* Scales and zero points as they are stored. */

typedef void store_function(const struct grouped *grouped, const struct scale *scales, size_t n, uint8_t *out);

/* Stores at most MOST_GROUPS scales. */
static void store(const struct grouped *grouped, const struct scale *scales, size_t n, uint8_t *out)
{
    const struct dtype *dtype = grouped->view.dtype;
    float numbers[MOST_GROUPS];
    for (size_t i = 0; dtype->block_bytes == 1 && i < n; i++)
        out[i] = scales[i].code;
    for (size_t i = 0; i < n; i++)
        numbers[i] = scales[i].stored;
    if (dtype->block_bytes > 1)
        dtype_kernels(dtype).encode(numbers, out, n);
}

static void store_edges(const struct grouped *grouped, const struct scale *scales, size_t n, uint8_t *out)
{
    float numbers[MOST_GROUPS];
    for (size_t i = 0; i < n; i++)
        numbers[i] = scales[i].zero_point;
    dtype_kernels(grouped->view.dtype).encode(numbers, out, n);
}

static bool read_each_scale(const struct view *view, uint64_t first, uint64_t count, store_function *store_all,
                            uint8_t *to, struct error *error)
{
    const struct grouped flat = in_one_row((const struct grouped *)view), *grouped = &flat;
    uint64_t across = groups_across(grouped), end = first + count;
    struct scale scales[MOST_GROUPS];
    while (first < end) {
        uint64_t rest = across - first % across, n = rest < end - first ? rest : end - first;
        n = n < MOST_GROUPS ? n : MOST_GROUPS;
        if (!read_group_scales(grouped, first / across, first % across, n, scales, error))
            return false;
        store_all(grouped, scales, n, to);
        to += n * view->dtype->block_bytes;
        first += n;
    }
    return true;
}

static bool read_scales(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return read_each_scale(view, first, count, store, out, error);
}

static bool read_edges(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return read_each_scale(view, first, count, store_edges, out, error);
}

static void scales_depend(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct grouped *grouped = (const struct grouped *)view;
    uint64_t rows = grouped->grouping->rows, down = first / view->shape[1];
    rows_depend(grouped, down * rows, ((first + count - 1) / view->shape[1] - down + 1) * rows, to);
    if (grouped->fused != NULL)
        fused_depend(grouped->fused, to);
}

/* Reads the words of `n` groups next to each other: the zero points of the rows that word `down` of a column holds. */
static bool read_words(const struct grouped *grouped, uint64_t down, uint64_t first, size_t n, struct scale *scales,
                       uint8_t *out, struct error *error)
{
    unsigned bits = grouped->grouping->bits, n_rows = WORD_BITS / bits;
    memset(out, 0, n * sizeof(uint32_t));
    for (uint64_t row = down * n_rows; row < (down + 1) * n_rows && row < grouped->n_rows; row++) {
        if (!read_group_scales(grouped, row, first, n, scales, error))
            return false;
        for (size_t i = 0; i < n; i++) {
            uint32_t code = (uint32_t)((int)scales[i].zero_point + (1 << (bits - 1)));
            unsigned bit = (unsigned)(row % n_rows) * bits;
            out[i * sizeof(uint32_t) + bit / 8] |= (uint8_t)(code << bit % 8);
        }
    }
    return true;
}

static bool read_zero_points(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct grouped *grouped = (const struct grouped *)view;
    uint64_t across = view->shape[1], end = first + count;
    struct scale *scales = memory_alloc((count < across ? count : across) * sizeof *scales);
    uint8_t *to = out;
    bool good = true;
    while (good && first < end) {
        uint64_t rest = across - first % across, n = rest < end - first ? rest : end - first;
        good = read_words(grouped, first / across, first % across, n, scales, to, error);
        to += n * sizeof(uint32_t);
        first += n;
    }
    free(scales);
    return good;
}

static void zero_points_depend(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct grouped *grouped = (const struct grouped *)view;
    uint64_t n_rows = WORD_BITS / grouped->grouping->bits, down = first / view->shape[1];
    rows_depend(grouped, down * n_rows, ((first + count - 1) / view->shape[1] - down + 1) * n_rows, to);
}

struct fused_scale_view {
    struct view view;
    struct fused *fused;
};

static bool read_fused_scale(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    float scale;
    if (count == 0)
        return true;
    if (!fused_scale(((const struct fused_scale_view *)view)->fused, &scale, error))
        return false;
    f32_dtype.kernels[CPU_PORTABLE].encode(&scale, out, 1);
    return true;
}

static void fused_scale_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    fused_depend(((const struct fused_scale_view *)view)->fused, to);
}

/* Making the views. */

static const struct view *view_of(struct arena *arena, const struct view_op *op, const struct grouped *grouped,
                                  const struct dtype *dtype, uint64_t down, uint64_t across)
{
    struct grouped *made = arena_alloc(arena, sizeof *made);
    const uint64_t shape[2] = {down, across};
    *made = *grouped;
    view_init(&made->view, arena, op, dtype, 2, shape);
    made->view.scattered = grouped->inner->scattered;
    return &made->view;
}

static struct grouped grouped_of(const struct view *matrix, const struct grouping *grouping, struct fused *fused)
{
    struct grouped grouped = {.inner = matrix, .grouping = grouping, .fused = fused};
    bool known = group_rounding(matrix->dtype, &grouped.rounding);
    assert(known && scale_needs_fused(grouping->scale) == (fused != NULL));
    (void)known;
    grouped.n_rows = matrix->shape[0];
    grouped.n_columns = matrix->shape[1];
    grouped.columns = grouping->columns != 0 ? grouping->columns : matrix->shape[1];
    return grouped;
}

const struct view *view_group_codes(struct arena *arena, const struct view *matrix, const struct grouping *grouping,
                                    struct fused *fused, const struct dtype *dtype)
{
    static const struct view_op op = {.name = "group codes", .cost = 1000, .read = read_codes, .depends = codes_depend};
    struct grouped grouped = grouped_of(matrix, grouping, fused);
    uint64_t unit = dtype->block_bytes * 8u;
    return view_of(arena, &op, &grouped, dtype, grouped.n_rows, rounded_up(grouped.n_columns * grouping->width, unit));
}

/* Returns the type of scales, those of a matrix of `number`. */
static const struct dtype *dtype_of_scales(const struct grouping *grouping, const struct dtype *number)
{
    switch (grouping->scale) {
    case SCALE_POWER_OF_TWO:
    case SCALE_CEILED:
    case SCALE_ABOVE:
    case SCALE_E4M3:
    case SCALE_AT_MOST:
        return &u8_dtype;
    default:
        return scale_needs_fused(grouping->scale) ? &f8_e4m3_dtype : number;
    }
}

const struct view *view_group_scales(struct arena *arena, const struct view *matrix, const struct grouping *grouping,
                                     struct fused *fused)
{
    static const struct view_op op = {.name = "group scales", .read = read_scales, .depends = scales_depend};
    struct grouped grouped = grouped_of(matrix, grouping, fused);
    const struct dtype *dtype = dtype_of_scales(grouping, matrix->dtype);
    return view_of(arena, &op, &grouped, dtype, rounded_up(grouped.n_rows, grouping->rows), groups_across(&grouped));
}

const struct view *view_group_edges(struct arena *arena, const struct view *matrix, const struct grouping *grouping)
{
    static const struct view_op op = {.name = "group edges", .read = read_edges, .depends = scales_depend};
    struct grouped grouped = grouped_of(matrix, grouping, NULL);
    return view_of(arena, &op, &grouped, matrix->dtype, grouped.n_rows, groups_across(&grouped));
}

const struct view *view_group_zero_points(struct arena *arena, const struct view *matrix,
                                          const struct grouping *grouping)
{
    static const struct view_op op = {.name = "group zeros", .read = read_zero_points, .depends = zero_points_depend};
    struct grouped grouped = grouped_of(matrix, grouping, NULL);
    return view_of(arena, &op, &grouped, &i32_dtype, rounded_up(grouped.n_rows * grouping->bits, WORD_BITS),
                   groups_across(&grouped));
}

const struct view *view_fused_scale(struct arena *arena, struct fused *fused)
{
    static const struct view_op op = {.name = "fused scale", .read = read_fused_scale, .depends = fused_scale_depends};
    static const uint64_t one[1] = {1};
    struct fused_scale_view *scale = arena_alloc(arena, sizeof *scale);
    view_init_shared(&scale->view, &op, &f32_dtype, 1, one);
    scale->fused = fused;
    return &scale->view;
}

void group_compute(const struct grouping *grouping, const struct dtype *dtype, enum group_part part,
                   const float *values, size_t n, uint8_t *out)
{
    const struct dtype *of_part = part == GROUP_SCALES ? dtype_of_scales(grouping, dtype) : dtype;
    struct grouped grouped = {.view = {.dtype = of_part}, .grouping = grouping, .n_rows = 1};
    struct scale scales[MOST_GROUPS];
    uint8_t codes[PIECE];
    struct error none;
    grouped.columns = grouping->columns;
    bool computed = group_rounding(dtype, &grouped.rounding) && fits_piece(&grouped);
    for (size_t done = 0, count; computed && done < n; done += count) {
        const size_t most = PIECE / grouped.columns;
        count = n - done < most ? n - done : most;
        const size_t n_values = count * grouped.columns;
        const float *of_piece = values + done * grouped.columns;
        computed = scale_piece(&grouped, of_piece, n_values, scales, &none);
        if (part == GROUP_CODES) {
            encode(&grouped, scales, of_piece, n_values, codes);
            pack(codes, n_values, grouping->width, out + bytes_of_codes(&grouped, done * grouped.columns));
        } else if (part == GROUP_SCALES) {
            store(&grouped, scales, count, out + done * of_part->block_bytes);
        } else {
            store_edges(&grouped, scales, count, out + done * of_part->block_bytes);
        }
    }
    assert(computed);
    (void)computed;
}
