/* F16 with the processor's conversions, except for NaN, which they make quiet. */
#include "quant/blocks/dtype.h"

#include <arm_neon.h>

decode_function f16_decode_neon;
encode_function f16_encode_neon;

static inline bool have_nan(float32x4_t low, float32x4_t high)
{
    return vminvq_u32(vandq_u32(vceqq_f32(low, low), vceqq_f32(high, high))) == 0;
}

void f16_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    const struct kernels *portable = &f16_dtype.kernels[CPU_PORTABLE];
    const uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8) {
        float16x8_t halves = vreinterpretq_f16_u8(vld1q_u8(bytes + 2 * i));
        float32x4_t low = vcvt_f32_f16(vget_low_f16(halves)), high = vcvt_high_f32_f16(halves);
        vst1q_f32(values + i, low);
        vst1q_f32(values + i + 4, high);
        if (have_nan(low, high))
            portable->decode(bytes + 2 * i, values + i, 8);
    }
    portable->decode(bytes + 2 * i, values + i, n_blocks - i);
}

void f16_encode_neon(const float *values, void *blocks, size_t n_blocks)
{
    const struct kernels *portable = &f16_dtype.kernels[CPU_PORTABLE];
    uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8) {
        float32x4_t low = vld1q_f32(values + i), high = vld1q_f32(values + i + 4);
        vst1q_u8(bytes + 2 * i, vreinterpretq_u8_f16(vcvt_high_f16_f32(vcvt_f16_f32(low), high)));
        if (have_nan(low, high))
            portable->encode(values + i, bytes + 2 * i, 8);
    }
    portable->encode(values + i, bytes + 2 * i, n_blocks - i);
}
