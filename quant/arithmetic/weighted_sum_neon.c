#include "quant/arithmetic/torch_sum.h"

#include <arm_neon.h>

enum { LANES = 8 };

/* Rounds to nearest even, and sets the quiet bit of a NaN. */
static inline uint16x4_t round_up(float32x4_t values)
{
    uint32x4_t bits = vreinterpretq_u32_f32(values), is_number = vceqq_f32(values, values);
    uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t half = vandq_u32(vaddq_u32(odd, vdupq_n_u32(0x7fff)), is_number);
    return vaddhn_u32(vorrq_u32(bits, vbicq_u32(vdupq_n_u32(0x00400000), is_number)), half);
}

void weighted_sum_neon(const struct weighted_terms *terms, size_t first, size_t count, unsigned char *out)
{
    const float32x4_t divisor = vdupq_n_f32(terms->divisor);
    size_t i = first;
    for (; i + LANES <= first + count; i += LANES, out += 2 * LANES) {
        float32x4_t low = vdupq_n_f32(0), high = vdupq_n_f32(0);
        for (size_t j = 0; j < terms->n; j++) {
            uint16x8_t numbers = vreinterpretq_u16_u8(vld1q_u8(terms->numbers[j] + 2 * i));
            float32x4_t weight = vdupq_n_f32(terms->weights[j]);
            low = vfmaq_f32(low, vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(numbers), 16)), weight);
            high = vfmaq_f32(high, vreinterpretq_f32_u32(vshll_high_n_u16(numbers, 16)), weight);
        }
        if (terms->divisor != 1) {
            low = vdivq_f32(low, divisor);
            high = vdivq_f32(high, divisor);
        }
        vst1q_u8(out, vreinterpretq_u8_u16(vcombine_u16(round_up(low), round_up(high))));
    }
    weighted_sum_portable(terms, i, first + count - i, out);
}
