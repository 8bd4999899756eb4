#include "models/sum.h"

#include <assert.h>
#include <string.h>

/* Lanes of eight, four sums of each, whose partial sums are kept apart after every sixteenth step, or a larger power of
 * two of them where there are very many, and the rest one by one. */
void sum_begin(struct sum *sum, size_t n)
{
    enum { LEAST_LEVEL_BITS = 4 };
    unsigned bits = 0;
    while (bits < 8 * sizeof n - 1 && (size_t)1 << bits < n / SUM_STEP)
        bits++;
    *sum = (struct sum){.level_bits = bits / SUM_LEVELS > LEAST_LEVEL_BITS ? bits / SUM_LEVELS : LEAST_LEVEL_BITS};
}

static void add_lanes(float *to, const float *from)
{
    for (unsigned i = 0; i < SUM_LANES; i++)
        to[i] += from[i];
}

/* Moves sums up by levels: the first one after each 2^level_bits steps, the next after as many of those. */
static void carry(struct sum *sum)
{
    const size_t mask = ((size_t)1 << sum->level_bits) - 1;
    for (unsigned level = 1; level < SUM_LEVELS; level++) {
        for (unsigned i = 0; i < SUM_VECTORS; i++)
            add_lanes(sum->at[level][i], sum->at[level - 1][i]);
        memset(sum->at[level - 1], 0, sizeof sum->at[level - 1]);
        if ((sum->n_steps & mask << level * sum->level_bits) != 0)
            break;
    }
}

void sum_add(struct sum *sum, const float *values, size_t n)
{
    assert(n % SUM_STEP == 0);
    for (; n > 0; n -= SUM_STEP, values += SUM_STEP) {
        for (unsigned i = 0; i < SUM_VECTORS; i++)
            add_lanes(sum->at[0][i], values + (size_t)i * SUM_LANES);
        if (++sum->n_steps % ((size_t)1 << sum->level_bits) == 0)
            carry(sum);
    }
}

float sum_end(struct sum *sum, const float *rest, size_t n_rest)
{
    size_t n_vectors = n_rest / SUM_LANES;
    float total = 0;
    for (unsigned level = 1; level < SUM_LEVELS; level++)
        for (unsigned i = 0; i < SUM_VECTORS; i++)
            add_lanes(sum->at[0][i], sum->at[level][i]);
    for (size_t i = 0; i < n_vectors; i++)
        add_lanes(sum->at[0][0], rest + i * SUM_LANES);
    for (unsigned i = 1; i < SUM_VECTORS; i++)
        add_lanes(sum->at[0][0], sum->at[0][i]);
    for (size_t i = n_vectors * SUM_LANES; i < n_rest; i++)
        total += rest[i];
    for (unsigned i = 0; i < SUM_LANES; i++)
        total += sum->at[0][0][i];
    return total;
}
