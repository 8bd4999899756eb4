/* The decoders of IQ1_S and IQ1_M, a point of eight values at a time. */
#include "quant/blocks/dtype.h"
#include "quant/blocks/iq1.h"

#include <arm_neon.h>

decode_function iq1_s_decode_neon, iq1_m_decode_neon;

static inline void decode_point(const uint8_t levels[IQ_GROUP], float scale, float shift, float *values)
{
    int16x8_t eight = vmovl_s8(vsub_s8(vreinterpret_s8_u8(vld1_u8(levels)), vdup_n_s8(1)));
    float32x4_t low = vcvtq_f32_s32(vmovl_s16(vget_low_s16(eight))), high = vcvtq_f32_s32(vmovl_high_s16(eight));
    vst1q_f32(values, vmulq_n_f32(vaddq_f32(low, vdupq_n_f32(shift)), scale));
    vst1q_f32(values + 4, vmulq_n_f32(vaddq_f32(high, vdupq_n_f32(shift)), scale));
}

void iq1_s_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    iq1_s_decode_by(decode_point, blocks, values, n_blocks);
}

void iq1_m_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    iq1_m_decode_by(decode_point, blocks, values, n_blocks);
}
