#include "quant/views/convert.h"

#include "base/little_endian.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE_ELEMENTS = 16384, /* a whole number of blocks of every dtype; its F32 values stay in the second-level cache */
    MARGIN_ELEMENTS = 256,  /* the largest block: a piece may start and end inside a source block */
    MAX_ELEMENT_BYTES = 8,
    /* for dtypes that need mean squares of rows: their blocks have 32 elements */
    PIECE_BLOCKS = PIECE_ELEMENTS / 32,
};

/* Returns the reason why `view` cannot be shown as `target`, or NULL. */
static const char *convert_refusal(const struct view *view, struct encoding target)
{
    struct kernels kernels = encoding_kernels(target);
    if (view->dtype == target.dtype)
        return NULL;
    if (dtype_kernels(view->dtype).decode == NULL)
        return "its values have no F32 form";
    if (kernels.encode == NULL && kernels.encode_weighted == NULL)
        return dtype_kernels(target.dtype).encode_weighted != NULL
                   ? "this type needs an importance matrix: -o imatrix=FILE"
                   : "wfs has no encoder for this type";
    if (view_row_elements(view) % target.dtype->block_elements == 0)
        return NULL;
    if (target.dtype->block_elements == 32)
        return "its row length is not a multiple of 32";
    return target.dtype->block_elements == 256 ? "its row length is not a multiple of 256"
                                               : "its row length is not a whole number of blocks";
}

bool convert_possible(const struct view *view, struct encoding target, const char **ret_reason)
{
    const char *refusal = convert_refusal(view, target);
    if (refusal != NULL)
        *ret_reason = refusal;
    return refusal == NULL;
}

uint64_t convert_bytes(const struct view *view, const struct dtype *dtype)
{
    return dtype_bytes(dtype, view->n_elements);
}

/* Reports whether all values are finite: like llama-quantize, wfs refuses to quantize others. */
static bool values_finite(const float *values, size_t n_values)
{
    const uint32_t exponent = 0x7f800000;
    uint32_t odd = 0; /* no early exit: the loop is vectorized */
    for (size_t i = 0; i < n_values; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        odd |= (bits & exponent) == exponent;
    }
    return odd == 0;
}

/* Reports whether the F16 scales of all blocks are finite: they are not if values are too large for the block type. */
static bool scales_finite(const struct dtype *dtype, const void *blocks, size_t n_blocks)
{
    const uint8_t *high = (const uint8_t *)blocks + 1; /* the byte of an F16 that holds its exponent */
    for (size_t i = 0; dtype->scales_finite != NULL && i < n_blocks; i++)
        if (!dtype->scales_finite((const uint8_t *)blocks + i * dtype->block_bytes))
            return false;
    for (size_t i = 0; i < n_blocks; i++, high += dtype->block_bytes)
        for (unsigned j = 0; j < dtype->n_scales; j++)
            if ((high[dtype->scale_offset[j]] & 0x7c) == 0x7c)
                return false;
    return true;
}

/* The source of a range's units: the view, or memory into which all were read. */
struct input {
    const struct view *view;
    const unsigned char *gathered; /* units from first_gathered on, or NULL */
    uint64_t first_gathered;
    bool row_known; /* mean_square is that of row `row` */
    uint64_t row;
    float mean_square;
};

static bool read_units(const struct input *input, uint64_t first, uint64_t count, void *out, struct error *error)
{
    size_t unit = input->view->dtype->block_bytes;
    if (input->gathered == NULL)
        return view_read(input->view, first, count, out, error);
    memcpy(out, input->gathered + (first - input->first_gathered) * unit, count * unit);
    return true;
}

/* Decodes elements [first, first + count) to F32, after up to a source block of earlier ones: *ret_skip of them. */
static bool decode_piece(const struct input *input, uint64_t first, size_t count, float *values, size_t *ret_skip,
                         struct error *error)
{
    const struct dtype *dtype = input->view->dtype;
    if (dtype == &f32_dtype) {
        *ret_skip = 0;
        if (!read_units(input, first, count, values, error))
            return false;
        little_endian(values, count, sizeof *values);
        return true;
    }
    _Alignas(64) unsigned char stored[(PIECE_ELEMENTS + 2 * MARGIN_ELEMENTS) * MAX_ELEMENT_BYTES];
    uint64_t block = dtype->block_elements, first_unit = first / block;
    uint64_t n_units = (first + count + block - 1) / block - first_unit;
    if (!read_units(input, first_unit, n_units, stored, error))
        return false;
    dtype_kernels(dtype).decode(stored, values, n_units);
    *ret_skip = first % block;
    return true;
}

/* Finds the mean square of a row; the sum always runs over the whole row, in order. */
static bool find_mean_square(struct input *input, uint64_t row, float *ret_mean_square, struct error *error)
{
    _Alignas(64) float values[PIECE_ELEMENTS + 2 * MARGIN_ELEMENTS];
    uint64_t n_columns = view_row_elements(input->view);
    float sum = 0;
    for (uint64_t at = 0; at < n_columns && !(input->row_known && input->row == row);) {
        size_t piece = n_columns - at < PIECE_ELEMENTS ? (size_t)(n_columns - at) : PIECE_ELEMENTS, skip;
        if (!decode_piece(input, row * n_columns + at, piece, values, &skip, error))
            return false;
        for (size_t i = skip; i < skip + piece; i++)
            sum += values[i] * values[i];
        at += piece;
        if (at == n_columns) {
            input->row_known = true;
            input->row = row;
            input->mean_square = sum / (float)n_columns;
        }
    }
    *ret_mean_square = input->mean_square;
    return true;
}

/* Encodes values from element `first` of the view on with the importance of their columns. */
static bool encode_weighted(struct input *input, struct encoding target, uint64_t first, const float *values,
                            size_t n_values, void *out, struct error *error)
{
    float importance[PIECE_ELEMENTS], mean_squares[PIECE_BLOCKS] = {0};
    const struct view *view = input->view;
    uint64_t n_columns = view_row_elements(view), rows_per_matrix = view->n_elements / n_columns / view_matrices(view);
    size_t block = target.dtype->block_elements, run;
    for (size_t at = 0; at < n_values; at += run) {
        uint64_t row = (first + at) / n_columns, column = (first + at) % n_columns;
        run = n_columns - column < n_values - at ? (size_t)(n_columns - column) : n_values - at;
        memcpy(importance + at, target.importance + row / rows_per_matrix * n_columns + column,
               run * sizeof *importance);
        float mean_square = 0;
        if (target.dtype->weighs_rows && !find_mean_square(input, row, &mean_square, error))
            return false;
        for (size_t i = at / block; target.dtype->weighs_rows && i < (at + run) / block; i++)
            mean_squares[i] = mean_square;
    }
    encoding_kernels(target).encode_weighted(values, importance, mean_squares, out, n_values / block);
    return true;
}

/* Sets the error for a value that a block type cannot store, with the tensor's name if known; returns false. */
static bool refuse_value(struct encoding target, const char *value, const char *remedy, struct error *error)
{
    const char *type = target.dtype->name;
    if (target.tensor != NULL)
        return error_set(error, "tensor '%.200s' has a value %s, which %s cannot store; %s", target.tensor, value, type,
                         remedy);
    return error_set(error, "a value %s, which %s cannot store; %s", value, type, remedy);
}

/* Encodes one piece, from element `first` of the view on; a block type refuses what llama-quantize refuses. */
static bool encode_piece(struct input *input, struct encoding target, uint64_t first, const float *values,
                         size_t n_values, void *out, struct error *error)
{
    size_t n_blocks = n_values / target.dtype->block_elements;
    struct kernels kernels = encoding_kernels(target);
    if (target.dtype->kind == DTYPE_BLOCK && !values_finite(values, n_values))
        return refuse_value(target, "that is not finite", "F32, F16 and BF16 files store it", error);
    if (kernels.encode_weighted == NULL)
        kernels.encode(values, out, n_blocks);
    else if (!encode_weighted(input, target, first, values, n_values, out, error))
        return false;
    if (target.dtype->kind == DTYPE_BLOCK && !scales_finite(target.dtype, out, n_blocks))
        return refuse_value(target, "that is too large for the scale of its block", "F32 and BF16 files store it",
                            error);
    return true;
}

/* Converts elements [element, end). */
static bool convert_elements(struct input *input, struct encoding target, uint64_t element, uint64_t end,
                             unsigned char *to, struct error *error)
{
    _Alignas(64) float values[PIECE_ELEMENTS + 2 * MARGIN_ELEMENTS];
    while (element < end) {
        size_t piece = end - element < PIECE_ELEMENTS ? (size_t)(end - element) : PIECE_ELEMENTS, skip;
        /* F32 is the decoded form: whole blocks go straight to an aligned output. */
        size_t block = input->view->dtype->block_elements;
        bool direct = target.dtype == &f32_dtype && element % block == 0 && piece % block == 0 &&
                      (uintptr_t)to % sizeof(float) == 0;
        if (!decode_piece(input, element, piece, direct ? (float *)(void *)to : values, &skip, error))
            return false;
        if (direct)
            little_endian(to, piece, sizeof(float));
        else if (!encode_piece(input, target, element, values + skip, piece, to, error))
            return false;
        to += piece / target.dtype->block_elements * target.dtype->block_bytes;
        element += piece;
    }
    return true;
}

/* Converts scattered units after reading all at once: one read of the source then serves the whole range. */
static bool convert_gathered(struct input *input, struct encoding target, uint64_t element, uint64_t end,
                             unsigned char *to, struct error *error)
{
    enum { MOST_BYTES = 8 << 20 };
    uint64_t row = target.importance != NULL && target.dtype->weighs_rows ? view_row_elements(input->view) : 1;
    uint64_t block = input->view->dtype->block_elements, first_unit = element / row * row / block;
    uint64_t n_units = ((end + row - 1) / row * row + block - 1) / block - first_unit;
    uint64_t n_bytes = n_units * input->view->dtype->block_bytes;
    if (n_bytes > MOST_BYTES)
        return convert_elements(input, target, element, end, to, error);
    unsigned char *gathered = memory_alloc(n_bytes);
    input->gathered = gathered;
    input->first_gathered = first_unit;
    bool converted = view_read(input->view, first_unit, n_units, gathered, error) &&
                     convert_elements(input, target, element, end, to, error);
    free(gathered);
    return converted;
}

bool convert_read(const struct view *view, struct encoding target, uint64_t first, uint64_t count, void *out,
                  struct error *error)
{
    if (view->dtype == target.dtype)
        return view_read(view, first, count, out, error);
    assert(view->dtype->block_elements <= MARGIN_ELEMENTS && PIECE_ELEMENTS % target.dtype->block_elements == 0);
    struct input input = {.view = view};
    uint64_t element = first * target.dtype->block_elements, end = element + count * target.dtype->block_elements;
    if (view->scattered && end - element > PIECE_ELEMENTS)
        return convert_gathered(&input, target, element, end, out, error);
    return convert_elements(&input, target, element, end, out, error);
}

bool convert_values(const struct view *view, uint64_t first, uint64_t count, float *values, struct error *error)
{
    if (!convert_read(view, encoding_of(&f32_dtype), first, count, values, error))
        return false;
    little_endian(values, count, sizeof *values);
    return true;
}

void convert_depends(const struct view *view, struct encoding target, uint64_t first, uint64_t count,
                     struct dependencies *to)
{
    bool weighs_rows = target.importance != NULL && target.dtype->weighs_rows && view->dtype != target.dtype;
    uint64_t step = weighs_rows ? view_row_elements(view) : 1, block = view->dtype->block_elements;
    uint64_t element = first * target.dtype->block_elements, end = element + count * target.dtype->block_elements;
    if (count == 0)
        return;
    uint64_t unit = element / step * step / block;
    view_depends(view, unit, ((end - 1) / step * step + step - 1) / block + 1 - unit, to);
}

uint64_t convert_cost(const struct view *view, struct encoding target, uint64_t count)
{
    enum { READ_AND_DECODE_COST = 250 }; /* picoseconds per element, of an element type */
    if (view->dtype == target.dtype)
        return count * view->op->cost / 1000;
    return count * target.dtype->block_elements / 1000 * (READ_AND_DECODE_COST + target.dtype->encode_cost);
}

/* Map and convert: elements computed from the elements at the same place. */

struct mapped {
    struct view view;
    const struct view *inner;
    map_function *map;
};

static bool mapped_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    enum { PIECE = 8192 };
    const struct mapped *mapped = (const struct mapped *)view;
    const struct dtype *dtype = view->dtype;
    float values[PIECE];
    unsigned char *to = out;
    for (uint64_t done = 0; done < count;) {
        uint64_t piece = count - done < PIECE ? count - done : PIECE;
        if (!convert_values(mapped->inner, first + done, piece, values, error))
            return false;
        mapped->map(values, piece);
        dtype_kernels(dtype).encode(values, to + done * dtype->block_bytes, piece);
        done += piece;
    }
    return true;
}

static void mapped_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    convert_depends(((const struct mapped *)view)->inner, encoding_of(&f32_dtype), first, count, to);
}

static const struct view_op mapped_op = {.name = "map", .read = mapped_read, .depends = mapped_depends};

const struct view *view_map(struct arena *arena, const struct view *view, const struct dtype *dtype, map_function *map)
{
    assert(dtype->block_elements == 1);
    struct mapped *mapped = arena_alloc(arena, sizeof *mapped);
    view_init_shared(&mapped->view, &mapped_op, dtype, view->rank, view->shape);
    mapped->inner = view;
    mapped->map = map;
    return &mapped->view;
}

struct converted {
    struct view view;
    const struct view *inner;
};

static bool converted_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return convert_read(((const struct converted *)view)->inner, encoding_of(view->dtype), first, count, out, error);
}

static void converted_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    convert_depends(((const struct converted *)view)->inner, encoding_of(view->dtype), first, count, to);
}

static const struct view_op converted_op = {.name = "convert", .read = converted_read, .depends = converted_depends};

const struct view *view_convert(struct arena *arena, const struct view *view, const struct dtype *dtype)
{
    if (view->dtype == dtype)
        return view;
    struct converted *converted = arena_alloc(arena, sizeof *converted);
    view_init_shared(&converted->view, &converted_op, dtype, view->rank, view->shape);
    converted->inner = view;
    return &converted->view;
}

const struct view *view_unrounded(const struct view *view)
{
    return view->op == &converted_op ? ((const struct converted *)view)->inner : view;
}

/* F64 as F32 that another rounding to fewer bits makes exact: toward zero, with the last bit set if anything is lost.
 */
struct rounded_to_odd {
    struct view view;
    const struct view *inner;
};

static float round_to_odd(double value)
{
    float nearest = (float)value;
    uint32_t bits;
    if (isnan(value) || (double)nearest == value)
        return nearest;
    memcpy(&bits, &nearest, sizeof bits);
    bits -= fabs((double)nearest) > fabs(value);
    bits |= 1;
    memcpy(&nearest, &bits, sizeof bits);
    return nearest;
}

static bool rounded_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    enum { PIECE = 1024 };
    double wide[PIECE];
    float narrow[PIECE];
    for (uint64_t done = 0; done < count;) {
        uint64_t n = count - done < PIECE ? count - done : PIECE;
        if (!view_read(((const struct rounded_to_odd *)view)->inner, first + done, n, wide, error))
            return false;
        little_endian(wide, n, sizeof *wide);
        for (uint64_t i = 0; i < n; i++)
            narrow[i] = round_to_odd(wide[i]);
        little_endian(narrow, n, sizeof *narrow);
        memcpy((unsigned char *)out + done * sizeof *narrow, narrow, n * sizeof *narrow);
        done += n;
    }
    return true;
}

static void rounded_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    view_depends(((const struct rounded_to_odd *)view)->inner, first, count, to);
}

static const struct view_op rounded_op = {.name = "round to odd", .read = rounded_read, .depends = rounded_depends};

const struct view *view_half(struct arena *arena, const struct view *view)
{
    if (view->dtype != &f64_dtype)
        return view_convert(arena, view, &f16_dtype);
    struct rounded_to_odd *rounded = arena_alloc(arena, sizeof *rounded);
    view_init_shared(&rounded->view, &rounded_op, &f32_dtype, view->rank, view->shape);
    rounded->inner = view;
    return view_convert(arena, &rounded->view, &f16_dtype);
}
