#include "quant/arithmetic/torch_sum.h"

#include <math.h>
#include <string.h>

enum { HALF_LANES = 2 * TORCH_SUM_LANES };

/* Adds whole pieces to what `reduction` is. */
typedef void add_function(void *reduction, const float *values, size_t n);

/* Passes on whole pieces, and keeps the rest. */
static void add_pieces(struct torch_held *held, add_function *add, void *reduction, const float *values, size_t n)
{
    size_t room = TORCH_PIECE - held->n, taken = held->n == 0 ? 0 : n < room ? n : room;
    memcpy(held->values + held->n, values, taken * sizeof *values);
    held->n += taken;
    if (held->n == TORCH_PIECE) {
        add(reduction, held->values, TORCH_PIECE);
        held->n = 0;
    }
    values += taken;
    n -= taken;
    if (n == 0)
        return;
    size_t whole = n - n % TORCH_PIECE;
    add(reduction, values, whole);
    memcpy(held->values, values + whole, (n - whole) * sizeof *values);
    held->n = n - whole;
}

void torch_total_begin(struct torch_total *total, const struct dtype *dtype, uint64_t n)
{
    total->halves = dtype->block_bytes == 2;
    total->small = n < (total->halves ? HALF_LANES : TORCH_SUM_LANES);
    total->held.n = 0;
    torch_sum_begin(&total->sum, total->halves ? n / HALF_LANES * TORCH_SUM_LANES : n);
}

/* A vector of a 16-bit type becomes two of F32, which are added. */
static void fold(const float *values, size_t n_vectors, float *folded)
{
    for (size_t i = 0; i < n_vectors; i++, values += HALF_LANES)
        for (size_t j = 0; j < TORCH_SUM_LANES; j++)
            *folded++ = values[j] + values[TORCH_SUM_LANES + j];
}

static void add_to_total(void *reduction, const float *values, size_t n)
{
    enum { AT_ONCE = 16 * TORCH_PIECE };
    struct torch_total *total = reduction;
    float folded[AT_ONCE / 2];
    if (!total->halves) {
        torch_sum_add(&total->sum, values, n);
        return;
    }
    for (size_t piece; n > 0; n -= piece, values += piece) {
        piece = n < AT_ONCE ? n : AT_ONCE;
        fold(values, piece / HALF_LANES, folded);
        torch_sum_add(&total->sum, folded, piece / 2);
    }
}

void torch_total_add(struct torch_total *total, const float *values, size_t n)
{
    add_pieces(&total->held, add_to_total, total, values, n);
}

float torch_total_end(struct torch_total *total)
{
    const struct torch_held *held = &total->held;
    float folded[TORCH_PIECE / 2];
    size_t lanes = total->halves ? HALF_LANES : TORCH_SUM_LANES, n_vectors = held->n / lanes;
    const float *whole = held->values;
    size_t n_whole = n_vectors * lanes;
    if (total->small)
        return torch_sum_short(held->values, held->n);
    if (!total->halves && held->n >= TORCH_SUM_STEP) { /* a step of its own */
        torch_sum_add(&total->sum, whole, TORCH_SUM_STEP);
        whole += TORCH_SUM_STEP;
        n_vectors -= TORCH_SUM_VECTORS;
    }
    if (total->halves) {
        fold(whole, n_vectors, folded);
        whole = folded;
    }
    return torch_sum_end_vectors(&total->sum, whole, n_vectors, held->values + n_whole, held->n - n_whole);
}

void torch_norm_begin(struct torch_norm *norm, const struct dtype *dtype)
{
    memset(norm->lanes, 0, sizeof norm->lanes);
    norm->held.n = 0;
    norm->halves = dtype->block_bytes == 2;
    norm->in_turn = dtype == &f16_dtype;
}

void torch_norm_begin_apart(struct torch_norm *norm)
{
    torch_norm_begin(norm, &f32_dtype);
    norm->in_turn = true;
}

static float add_in_turn(float sum, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum += values[i] * values[i];
    return sum;
}

static void add_to_norm(void *reduction, const float *values, size_t n)
{
    struct torch_norm *norm = reduction;
    float lanes[TORCH_SUM_LANES];
    if (norm->in_turn) {
        norm->lanes[0] = add_in_turn(norm->lanes[0], values, n);
        return;
    }
    memcpy(lanes, norm->lanes, sizeof lanes);
    for (size_t i = 0; i < n; i += TORCH_SUM_LANES)
        for (size_t j = 0; j < TORCH_SUM_LANES; j++)
            lanes[j] += values[i + j] * values[i + j];
    memcpy(norm->lanes, lanes, sizeof lanes);
}

void torch_norm_add(struct torch_norm *norm, const float *values, size_t n)
{
    add_pieces(&norm->held, add_to_norm, norm, values, n);
}

/* Of the values after the last whole vector, groups of four are squared together, so that their squares are rounded. */
float torch_norm_end(struct torch_norm *norm)
{
    enum { GROUP = 4 };
    const struct torch_held *held = &norm->held;
    size_t n_whole = held->n - held->n % (norm->halves ? HALF_LANES : TORCH_SUM_LANES);
    add_to_norm(norm, held->values, norm->in_turn ? held->n : n_whole);
    float sum = norm->lanes[0];
    if (norm->in_turn)
        return sqrtf(sum);
    for (size_t j = 1; j < TORCH_SUM_LANES; j++)
        sum += norm->lanes[j];
    size_t n_grouped = held->n - held->n % GROUP;
    sum = add_in_turn(sum, held->values + n_whole, n_grouped - n_whole);
    for (size_t i = n_grouped; i < held->n; i++)
        sum = fmaf(held->values[i], held->values[i], sum);
    return sqrtf(sum);
}

float torch_total_of(const struct dtype *dtype, const float *values, size_t n)
{
    struct torch_total total;
    torch_total_begin(&total, dtype, n);
    torch_total_add(&total, values, n);
    return torch_total_end(&total);
}

float torch_norm_of(const struct dtype *dtype, const float *values, size_t n)
{
    struct torch_norm norm;
    torch_norm_begin(&norm, dtype);
    torch_norm_add(&norm, values, n);
    return torch_norm_end(&norm);
}
