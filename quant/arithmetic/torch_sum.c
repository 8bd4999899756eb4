#include "quant/arithmetic/torch_sum.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Begins a sum of four vectors of eight lanes. Partial sums move to the next level after every sixteenth step, or a
 * larger power of two if there are very many; the last numbers are added one by one. */
void torch_sum_begin(struct torch_sum *sum, size_t n)
{
    enum { LEAST_LEVEL_BITS = 4 };
    unsigned bits = 0;
    while (bits < 8 * sizeof n - 1 && (size_t)1 << bits < n / TORCH_SUM_STEP)
        bits++;
    *sum = (struct torch_sum){.level_bits = bits / TORCH_SUM_LEVELS > LEAST_LEVEL_BITS ? bits / TORCH_SUM_LEVELS
                                                                                       : LEAST_LEVEL_BITS};
}

static void add_lanes(float *to, const float *from)
{
    for (unsigned i = 0; i < TORCH_SUM_LANES; i++)
        to[i] += from[i];
}

/* Moves sums up by levels: the first level's after each 2^level_bits steps, the next level's after as many of those. */
static void carry(struct torch_sum *sum)
{
    const size_t mask = ((size_t)1 << sum->level_bits) - 1;
    for (unsigned level = 1; level < TORCH_SUM_LEVELS; level++) {
        for (unsigned i = 0; i < TORCH_SUM_VECTORS; i++)
            add_lanes(sum->at[level][i], sum->at[level - 1][i]);
        memset(sum->at[level - 1], 0, sizeof sum->at[level - 1]);
        if ((sum->n_steps & mask << level * sum->level_bits) != 0)
            break;
    }
}

void torch_sum_add(struct torch_sum *sum, const float *values, size_t n)
{
    assert(n % TORCH_SUM_STEP == 0);
    for (; n > 0; n -= TORCH_SUM_STEP, values += TORCH_SUM_STEP) {
        for (unsigned i = 0; i < TORCH_SUM_VECTORS; i++)
            add_lanes(sum->at[0][i], values + (size_t)i * TORCH_SUM_LANES);
        if (++sum->n_steps % ((size_t)1 << sum->level_bits) == 0)
            carry(sum);
    }
}

float torch_sum_end_vectors(struct torch_sum *sum, const float *vectors, size_t n_vectors, const float *rest,
                            size_t n_rest)
{
    float total = 0;
    for (unsigned level = 1; level < TORCH_SUM_LEVELS; level++)
        for (unsigned i = 0; i < TORCH_SUM_VECTORS; i++)
            add_lanes(sum->at[0][i], sum->at[level][i]);
    for (size_t i = 0; i < n_vectors; i++)
        add_lanes(sum->at[0][0], vectors + i * TORCH_SUM_LANES);
    for (unsigned i = 1; i < TORCH_SUM_VECTORS; i++)
        add_lanes(sum->at[0][0], sum->at[0][i]);
    for (size_t i = 0; i < n_rest; i++)
        total += rest[i];
    for (unsigned i = 0; i < TORCH_SUM_LANES; i++)
        total += sum->at[0][0][i];
    return total;
}

float torch_sum_end(struct torch_sum *sum, const float *rest, size_t n_rest)
{
    size_t n_vectors = n_rest / TORCH_SUM_LANES, n_whole = n_vectors * TORCH_SUM_LANES;
    return torch_sum_end_vectors(sum, rest, n_vectors, rest + n_whole, n_rest - n_whole);
}

/* Numbers go to four sums in turn; those that are left go to the first. */
float torch_sum_short(const float *values, size_t n)
{
    float lanes[TORCH_SUM_VECTORS] = {0};
    for (size_t i = 0; i < n; i++)
        lanes[i < n - n % TORCH_SUM_VECTORS ? i % TORCH_SUM_VECTORS : 0] += values[i];
    return ((lanes[0] + lanes[1]) + lanes[2]) + lanes[3];
}

float torch_sum_few(const float *values, size_t n)
{
    struct torch_sum sum;
    size_t n_whole = n - n % TORCH_SUM_STEP;
    if (n < TORCH_SUM_LANES)
        return torch_sum_short(values, n);
    torch_sum_begin(&sum, n);
    torch_sum_add(&sum, values, n_whole);
    return torch_sum_end(&sum, values + n_whole, n - n_whole);
}

uint64_t torch_sum_grouped_columns(uint64_t n_columns)
{
    return n_columns - n_columns % (n_columns < TORCH_SUM_LANES ? TORCH_SUM_VECTORS : TORCH_SUM_STEP);
}

float torch_sum_column(const float *values, size_t n, uint64_t column, uint64_t n_columns)
{
    float sum = 0;
    if (column >= torch_sum_grouped_columns(n_columns))
        return torch_sum_short(values, n);
    for (size_t i = 0; i < n; i += TORCH_SUM_GROUP) {
        float group = 0;
        for (size_t j = i; j < n && j < i + TORCH_SUM_GROUP; j++)
            group += values[j];
        sum += group;
    }
    return sum;
}

/* Sums and norms of values that come in pieces. */

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
