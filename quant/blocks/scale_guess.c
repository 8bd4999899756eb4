#include "quant/blocks/scale_guess.h"

#include "quant/blocks/f16.h"

#include <math.h>

enum { BLOCK = SCALE_GUESS_BLOCK, LANES = 8, MOST_PARTS = 16 };

extern const struct dtype q2_k_dtype, q3_k_dtype, q4_k_dtype, q5_k_dtype, q6_k_dtype, iq4_xs_dtype;

static const struct scale_guess rows[] = {
    {&q2_k_dtype, 80, 82, 16, true, 3, 0, 15, 0, {15, 240}},
    {&q3_k_dtype, 108, 108, 16, false, -4, -32, 31, 32, {63, 0}},
    {&q4_k_dtype, 0, 2, 8, true, 15, 0, 63, 0, {63, 0}},
    {&q5_k_dtype, 0, 2, 8, true, 31, 0, 63, 0, {63, 0}},
    {&q6_k_dtype, 208, 208, 16, false, -32, -128, 127, 0, {255, 0}},
    {&iq4_xs_dtype, 0, 0, 8, false, -127, -32, 31, 32, {63, 0}},
};

const struct scale_guess *scale_guess_of(const struct dtype *dtype)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].dtype == dtype)
            return &rows[i];
    return NULL;
}

/* The least and the greatest value of a sub-block, and 0. NaN is neither. */
struct extremes {
    float low, high;
};

static inline void find_extremes(const float *values, size_t n_parts, struct extremes *extremes)
{
    const size_t n = BLOCK / n_parts;
    for (size_t part = 0; part < n_parts; part++, values += n) {
        float low[LANES] = {0}, high[LANES] = {0};
        for (size_t i = 0; i < n; i += LANES)
            for (size_t j = 0; j < LANES; j++) {
                low[j] = values[i + j] < low[j] ? values[i + j] : low[j];
                high[j] = values[i + j] > high[j] ? values[i + j] : high[j];
            }
        for (size_t j = 1; j < LANES; j++) {
            low[0] = low[j] < low[0] ? low[j] : low[0];
            high[0] = high[j] > high[0] ? high[j] : high[0];
        }
        extremes[part] = (struct extremes){low[0], high[0]};
    }
}

/* NaN becomes the lowest. */
static unsigned char fit(const struct scale_guess *guess, float scale)
{
    float within = scale > guess->lowest ? scale < guess->highest ? scale : guess->highest : guess->lowest;
    return (unsigned char)((int)rintf(within) + guess->offset);
}

static void guess_block(const struct scale_guess *guess, const float *values, const unsigned char *block,
                        unsigned char *scales)
{
    struct extremes extremes[MOST_PARTS];
    find_extremes(values, guess->n_parts, extremes);
    const float scale = f16_load(block + guess->scale), minimum = f16_load(block + guess->minimum);
    const bool shares = guess->masks[1] != 0;
    for (size_t i = 0; i < guess->n_parts; i++) {
        const float low = extremes[i].low, high = extremes[i].high;
        const float range = guess->has_minimums ? high - low : high > -low ? high : low;
        scales[i] = fit(guess, range / guess->levels / scale);
        if (!guess->has_minimums)
            continue;
        unsigned char least = fit(guess, -low / minimum);
        if (shares)
            scales[i] |= (unsigned char)(least << 4);
        else
            scales[guess->n_parts + i] = least;
    }
}

static scale_guess_block *const kernels[CPU_LEVELS] = {
    [CPU_PORTABLE] = guess_block,
    [CPU_AVX2] = ON_X86(scale_guess_block_avx2),
};

void scale_guess_make_at(enum cpu_level level, const struct scale_guess *guess, const float *values,
                         const unsigned char *blocks, size_t n_blocks, unsigned char *ret_scales)
{
    const size_t n_scales = guess->has_minimums && guess->masks[1] == 0 ? 2 * guess->n_parts : guess->n_parts;
    while (kernels[level] == NULL)
        level--;
    for (size_t i = 0; i < n_blocks; i++, blocks += guess->dtype->block_bytes, ret_scales += n_scales)
        kernels[level](guess, values + i * BLOCK, blocks, ret_scales);
}

void scale_guess_make(const struct scale_guess *guess, const float *values, const unsigned char *blocks,
                      size_t n_blocks, unsigned char *ret_scales)
{
    scale_guess_make_at(cpu_level(), guess, values, blocks, n_blocks, ret_scales);
}

void scale_guess_subtract(const struct scale_guess *guess, unsigned char *scales, const unsigned char *guesses,
                          size_t n)
{
    const unsigned first = guess->masks[0], second = guess->masks[1];
    for (size_t i = 0; i < n; i++)
        scales[i] = (unsigned char)(((scales[i] - guesses[i]) & first) |
                                    (((scales[i] & second) - (guesses[i] & second)) & second));
}

void scale_guess_add(const struct scale_guess *guess, unsigned char *scales, const unsigned char *guesses, size_t n)
{
    const unsigned first = guess->masks[0], second = guess->masks[1];
    for (size_t i = 0; i < n; i++)
        scales[i] = (unsigned char)(((scales[i] + guesses[i]) & first) |
                                    (((scales[i] & second) + (guesses[i] & second)) & second));
}
