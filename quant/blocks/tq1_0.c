/* TQ1_0: 256 values in 54 bytes. qs[48] of five ternary digits a byte, qh[4] of four, F16 d; value = d * (digit - 1).
 * A byte holds its digits as a fraction of 256: ceil(number * 256 / 243), so that a digit comes out of a multiplication
 * by 3. */
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/ternary.h"

enum { QS = 0, QH = 48, D = 52, BLOCK_BYTES = 54 };

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

static void decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block + D);
    for (int j = 0; j < 48; j++) {
        int first, step;
        layout(j, &first, &step);
        for (int n = 0; n < 5; n++)
            values[first + n * step] = (float)(digit_of(block[QS + j], n) - 1) * d;
    }
    for (int j = 0; j < 4; j++)
        for (int n = 0; n < 4; n++)
            values[240 + n * 4 + j] = (float)(digit_of(block[QH + j], n) - 1) * d;
}

static void encode_block(const float *values, uint8_t *block)
{
    uint8_t digits[TERNARY_ELEMENTS];
    f16_store(block + D, ternary_digits(values, digits));
    for (int j = 0; j < 48; j++) {
        int first, step;
        layout(j, &first, &step);
        block[QS + j] = pack_digits(digits + first, step, 5);
    }
    for (int j = 0; j < 4; j++)
        block[QH + j] = pack_digits(digits + 240 + j, 4, 4);
}

DEFINE_BLOCK_KERNELS(tq1_0, TERNARY_ELEMENTS, BLOCK_BYTES)

decode_function tq1_0_decode_neon, tq1_0_decode_avx2;
encode_function tq1_0_encode_neon, tq1_0_encode_avx2;

const struct dtype tq1_0_dtype = {
    BLOCK_DTYPE(tq1_0, "TQ1_0", 34, TERNARY_ELEMENTS),
    .n_scales = 1,
    .scale_offset = {D},
    .encode_cost = 300,
    .kernels[CPU_PORTABLE] = {tq1_0_decode, tq1_0_encode},
    .kernels[CPU_NEON] = {ON_ARM(tq1_0_decode_neon), ON_ARM(tq1_0_encode_neon)},
    .kernels[CPU_AVX2] = {ON_X86(tq1_0_decode_avx2), ON_X86(tq1_0_encode_avx2)},
};
