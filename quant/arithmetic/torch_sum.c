#include "quant/arithmetic/torch_sum.h"

#include <assert.h>
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
