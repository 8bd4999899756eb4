/* Blocks with a scale and levels of one or two bits or of ternary digits. */
#include "quant/blocks/block32.h"
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/ternary.h"

/* Q1_0: 128 values in 18 bytes. F16 d, a bit for each value; value = d if the bit is set, else -d. */

enum { Q1_0_ELEMENTS = 128, Q1_0_QS = 2, Q1_0_BYTES = 18 };

static void q1_0_decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block);
    for (int i = 0; i < Q1_0_ELEMENTS; i++)
        values[i] = block[Q1_0_QS + i / 8] >> i % 8 & 1 ? d : -d;
}

/* Encodes a block; d is the mean magnitude. */
static void q1_0_encode_block(const float *values, uint8_t *block)
{
    float sum = 0;
    memset(block + Q1_0_QS, 0, Q1_0_BYTES - Q1_0_QS);
    for (int i = 0; i < Q1_0_ELEMENTS; i++) {
        sum += fabsf(values[i]);
        block[Q1_0_QS + i / 8] |= (uint8_t)((values[i] >= 0) << i % 8);
    }
    f16_store(block, sum / Q1_0_ELEMENTS);
}

DEFINE_BLOCK_KERNELS(q1_0, Q1_0_ELEMENTS, Q1_0_BYTES)

decode_function q1_0_decode_neon, q1_0_decode_avx2;
encode_function q1_0_encode_neon, q1_0_encode_avx2;

const struct dtype q1_0_dtype = {
    BLOCK_DTYPE(q1_0, "Q1_0", 41, Q1_0_ELEMENTS, Q1_0_BYTES),
    .n_scales = 1,
    .encode_cost = 200,
    .kernels[CPU_PORTABLE] = {q1_0_decode, q1_0_encode},
    .kernels[CPU_NEON] = {ON_ARM(q1_0_decode_neon), ON_ARM(q1_0_encode_neon)},
    .kernels[CPU_AVX2] = {ON_X86(q1_0_decode_avx2), ON_X86(q1_0_encode_avx2)},
};

/* Q2_0: 64 values in 18 bytes. F16 d, qs[16] of four 2-bit levels a byte; value = (level - 1) * d. */

enum { Q2_0_ELEMENTS = 64, Q2_0_QS = 2, Q2_0_BYTES = 18 };

static void q2_0_decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block);
    for (int i = 0; i < Q2_0_ELEMENTS; i++)
        values[i] = (float)((block[Q2_0_QS + i / 4] >> 2 * (i % 4) & 3) - 1) * d;
}

/* Encodes a block; d is the largest magnitude. */
static void q2_0_encode_block(const float *values, uint8_t *block)
{
    float largest = 0;
    for (int i = 0; i < Q2_0_ELEMENTS; i++)
        largest = fabsf(values[i]) > largest ? fabsf(values[i]) : largest;
    float inverse = block32_inverse(largest);
    memset(block + Q2_0_QS, 0, Q2_0_BYTES - Q2_0_QS);
    for (int i = 0; i < Q2_0_ELEMENTS; i++) {
        int level = block32_round(values[i] * inverse);
        int capped = level < 2 ? level : 2;
        block[Q2_0_QS + i / 4] |= (uint8_t)((capped < -1 ? 0 : capped + 1) << 2 * (i % 4));
    }
    f16_store(block, largest);
}

DEFINE_BLOCK_KERNELS(q2_0, Q2_0_ELEMENTS, Q2_0_BYTES)

decode_function q2_0_decode_neon, q2_0_decode_avx2;
encode_function q2_0_encode_neon, q2_0_encode_avx2;

const struct dtype q2_0_dtype = {
    BLOCK_DTYPE(q2_0, "Q2_0", 42, Q2_0_ELEMENTS, Q2_0_BYTES),
    .n_scales = 1,
    .encode_cost = 300,
    .kernels[CPU_PORTABLE] = {q2_0_decode, q2_0_encode},
    .kernels[CPU_NEON] = {ON_ARM(q2_0_decode_neon), ON_ARM(q2_0_encode_neon)},
    .kernels[CPU_AVX2] = {ON_X86(q2_0_decode_avx2), ON_X86(q2_0_encode_avx2)},
};

/* TQ1_0: 256 values in 54 bytes. qs[48] of five ternary digits a byte, qh[4] of four, F16 d; value = d * (digit - 1).
 * A byte holds its digits as a fraction of 256: ceil(number * 256 / 243), so that a digit comes out of a multiplication
 * by 3. */

enum { TQ1_0_QS = 0, TQ1_0_QH = 48, TQ1_0_D = 52, TQ1_0_BYTES = 54 };

/* Finds the values of byte `j` of qs: its digit n is value `first` + n * `step`. */
static void layout(int j, int *ret_first, int *ret_step)
{
    bool wide = j < 32;
    *ret_first = wide ? j : 160 + (j - 32);
    *ret_step = wide ? 32 : 16;
}

static uint8_t pack_digits(const uint8_t *digits, int step, int n_digits)
{
    unsigned number = 0;
    for (int n = 0; n < 5; n++)
        number = number * 3 + (n < n_digits ? digits[n * step] : 0);
    return (uint8_t)((number * 256 + 242) / 243);
}

static int digit_of(uint8_t byte, int n)
{
    static const uint8_t power[] = {1, 3, 9, 27, 81};
    return (uint8_t)(byte * power[n]) * 3 >> 8;
}

static void tq1_0_decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block + TQ1_0_D);
    for (int j = 0; j < 48; j++) {
        int first, step;
        layout(j, &first, &step);
        for (int n = 0; n < 5; n++)
            values[first + n * step] = (float)(digit_of(block[TQ1_0_QS + j], n) - 1) * d;
    }
    for (int j = 0; j < 4; j++)
        for (int n = 0; n < 4; n++)
            values[240 + n * 4 + j] = (float)(digit_of(block[TQ1_0_QH + j], n) - 1) * d;
}

static void tq1_0_encode_block(const float *values, uint8_t *block)
{
    uint8_t digits[TERNARY_ELEMENTS];
    f16_store(block + TQ1_0_D, ternary_digits(values, digits));
    for (int j = 0; j < 48; j++) {
        int first, step;
        layout(j, &first, &step);
        block[TQ1_0_QS + j] = pack_digits(digits + first, step, 5);
    }
    for (int j = 0; j < 4; j++)
        block[TQ1_0_QH + j] = pack_digits(digits + 240 + j, 4, 4);
}

DEFINE_BLOCK_KERNELS(tq1_0, TERNARY_ELEMENTS, TQ1_0_BYTES)

decode_function tq1_0_decode_neon, tq1_0_decode_avx2;
encode_function tq1_0_encode_neon, tq1_0_encode_avx2;

const struct dtype tq1_0_dtype = {
    BLOCK_DTYPE(tq1_0, "TQ1_0", 34, TERNARY_ELEMENTS, TQ1_0_BYTES),
    .n_scales = 1,
    .scale_offset = {TQ1_0_D},
    .encode_cost = 300,
    .kernels[CPU_PORTABLE] = {tq1_0_decode, tq1_0_encode},
    .kernels[CPU_NEON] = {ON_ARM(tq1_0_decode_neon), ON_ARM(tq1_0_encode_neon)},
    .kernels[CPU_AVX2] = {ON_X86(tq1_0_decode_avx2), ON_X86(tq1_0_encode_avx2)},
};

/* TQ2_0: 256 values in 66 bytes. qs[64] of four 2-bit digits a byte, F16 d; value = d * (digit - 1). */

enum { TQ2_0_D = 64, TQ2_0_BYTES = 66 };

static void tq2_0_decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block + TQ2_0_D);
    for (int i = 0; i < TERNARY_ELEMENTS; i++)
        values[i] = (float)((block[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3) - 1) * d;
}

static void tq2_0_encode_block(const float *values, uint8_t *block)
{
    uint8_t digits[TERNARY_ELEMENTS];
    f16_store(block + TQ2_0_D, ternary_digits(values, digits));
    for (int j = 0; j < 64; j++) {
        const uint8_t *digit = digits + j / 32 * 128 + j % 32;
        block[j] = (uint8_t)(digit[0] | digit[32] << 2 | digit[64] << 4 | digit[96] << 6);
    }
}

DEFINE_BLOCK_KERNELS(tq2_0, TERNARY_ELEMENTS, TQ2_0_BYTES)

decode_function tq2_0_decode_neon, tq2_0_decode_avx2;
encode_function tq2_0_encode_neon, tq2_0_encode_avx2;

const struct dtype tq2_0_dtype = {
    BLOCK_DTYPE(tq2_0, "TQ2_0", 35, TERNARY_ELEMENTS, TQ2_0_BYTES),
    .n_scales = 1,
    .scale_offset = {TQ2_0_D},
    .encode_cost = 300,
    .kernels[CPU_PORTABLE] = {tq2_0_decode, tq2_0_encode},
    .kernels[CPU_NEON] = {ON_ARM(tq2_0_decode_neon), ON_ARM(tq2_0_encode_neon)},
    .kernels[CPU_AVX2] = {ON_X86(tq2_0_decode_avx2), ON_X86(tq2_0_encode_avx2)},
};
