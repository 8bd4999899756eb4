/* IQ4_NL: 32 values in 18 bytes. F16 d, qs[16]; value = d * iq4_levels[index]. */
#include "quant/dtype.h"
#include "quant/f16.h"
#include "quant/iq4.h"
#include "quant/legacy.h"

enum { QS = 2, BLOCK_BYTES = 18 };

const int8_t iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

int iq4_nearest(float value)
{
    if (!(value > iq4_levels[0]))
        return 0;
    if (value >= iq4_levels[15])
        return 15;
    int above = 1;
    while ((float)iq4_levels[above] <= value)
        above++;
    return value - (float)iq4_levels[above - 1] < (float)iq4_levels[above] - value ? above - 1 : above;
}

/* The weighted sums of one try. */
static void try_scale(const float *values, float inverse, float *ret_sum_qx, float *ret_sum_q2)
{
    float sum_qx = 0, sum_q2 = 0;
    for (int i = 0; i < IQ4_ELEMENTS; i++) {
        float level = iq4_levels[iq4_nearest(inverse * values[i])], weight = values[i] * values[i];
        sum_qx += weight * level * values[i];
        sum_q2 += weight * level * level;
    }
    *ret_sum_qx = sum_qx;
    *ret_sum_q2 = sum_q2;
}

float iq4_search(const float *values)
{
    float largest = legacy_signed_largest(values), sum_qx, sum_q2;
    if (fabsf(largest) < 1e-15f)
        return 0;
    float first = -largest / (float)iq4_levels[0];
    try_scale(values, 1 / first, &sum_qx, &sum_q2);
    float scale = sum_qx / sum_q2, best = scale * sum_qx;
    for (int step = -IQ4_TRIES; step <= IQ4_TRIES; step++) {
        try_scale(values, (float)(step + iq4_levels[0]) / largest, &sum_qx, &sum_q2);
        if (sum_q2 > 0 && sum_qx * sum_qx > best * sum_q2) {
            scale = sum_qx / sum_q2;
            best = scale * sum_qx;
        }
    }
    return scale;
}

static void decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block);
    for (int i = 0; i < IQ4_ELEMENTS; i++)
        values[i] = d * (float)iq4_levels[legacy_nibble(block + QS, i)];
}

static void encode_block(const float *values, uint8_t *block)
{
    uint8_t levels[IQ4_ELEMENTS];
    float d = iq4_search(values), inverse = legacy_inverse(d);
    for (int i = 0; i < IQ4_ELEMENTS; i++)
        levels[i] = (uint8_t)iq4_nearest(inverse * values[i]);
    f16_store(block, d);
    legacy_pack_nibbles(levels, block + QS);
}

DEFINE_BLOCK_KERNELS(iq4_nl, IQ4_ELEMENTS, BLOCK_BYTES)

const struct dtype iq4_nl_dtype = {
    .name = "IQ4_NL",
    .view_name = "iq4_nl",
    .kind = DTYPE_BLOCK,
    .block_elements = IQ4_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 20,
    .n_scales = 1,
    .encode_cost = 40000,
    .kernels[CPU_PORTABLE] = {iq4_nl_decode, iq4_nl_encode},
};
