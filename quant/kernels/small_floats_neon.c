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

/* 8-bit types by way of F16, as small_floats_avx2.c does: F16 holds all values of E4M3, E5M2 and E4M3FNUZ, with another
 * bias of the exponent. NaNs equal those of the portable kernels. */

decode_function f8_e4m3_decode_neon, f8_e5m2_decode_neon, f8_e4m3fnuz_decode_neon, f8_e5m2fnuz_decode_neon;
decode_function f8_e8m0_decode_neon;

extern const struct dtype f8_e5m2_dtype, f8_e4m3fnuz_dtype, f8_e5m2fnuz_dtype, f8_e8m0_dtype;

enum kind { E4M3, E4M3FNUZ, E5M2 };

/* Returns eight bytes as F16. */
static inline float16x8_t as_f16(enum kind kind, const uint8_t *bytes)
{
    uint16x8_t eight = vmovl_u8(vld1_u8(bytes));
    if (kind == E5M2)
        return vreinterpretq_f16_u16(vshlq_n_u16(eight, 8));
    uint16x8_t magnitude = vshlq_n_u16(vandq_u16(eight, vdupq_n_u16(0x7f)), 7);
    return vreinterpretq_f16_u16(vorrq_u16(magnitude, vshlq_n_u16(vandq_u16(eight, vdupq_n_u16(0x80)), 8)));
}

/* Sets the exponent right, and NaNs: what would be 480, the negative zero, and NaNs of F16. */
static inline float32x4_t finish(enum kind kind, float32x4_t values)
{
    uint32x4_t bits, nan;
    if (kind != E5M2)
        values = vmulq_n_f32(values, kind == E4M3 ? 256 : 128);
    bits = vreinterpretq_u32_f32(values);
    if (kind == E4M3)
        nan = vceqq_f32(vabsq_f32(values), vdupq_n_f32(480));
    else
        nan = kind == E4M3FNUZ ? vceqq_u32(bits, vdupq_n_u32(0x80000000)) : vmvnq_u32(vceqq_f32(values, values));
    uint32x4_t quiet = vorrq_u32(vandq_u32(bits, vdupq_n_u32(0x80000000)), vdupq_n_u32(0x7fc00000));
    return vreinterpretq_f32_u32(vbslq_u32(nan, quiet, bits));
}

static inline void decode(const struct dtype *dtype, enum kind kind, const uint8_t *bytes, float *values, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        float16x8_t halves = as_f16(kind, bytes + i);
        vst1q_f32(values + i, finish(kind, vcvt_f32_f16(vget_low_f16(halves))));
        vst1q_f32(values + i + 4, finish(kind, vcvt_high_f32_f16(halves)));
    }
    dtype->kernels[CPU_PORTABLE].decode(bytes + i, values + i, n - i);
}

void f8_e4m3_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    decode(&f8_e4m3_dtype, E4M3, blocks, values, n_blocks);
}

void f8_e4m3fnuz_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    decode(&f8_e4m3fnuz_dtype, E4M3FNUZ, blocks, values, n_blocks);
}

void f8_e5m2_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    decode(&f8_e5m2_dtype, E5M2, blocks, values, n_blocks);
}

/* Stores eight numbers in BF16 as F32. */
static inline void store_bf16(float *values, uint16x8_t numbers)
{
    vst1q_f32(values, vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(numbers), 16)));
    vst1q_f32(values + 4, vreinterpretq_f32_u32(vshll_high_n_u16(numbers, 16)));
}

/* Not by way of F16, which has no exponent for the largest values. Magnitudes below 4, which are subnormal, are 0 and
 * 2^-17 times 1 to 3. */
void f8_e5m2fnuz_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    static const uint16_t subnormal[8] = {0x0000, 0x3700, 0x3780, 0x37c0};
    const uint8x16_t table = vreinterpretq_u8_u16(vld1q_u16(subnormal));
    const uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8) {
        uint8x8_t eight = vld1_u8(bytes + i), magnitudes = vand_u8(eight, vdup_n_u8(0x7f));
        uint16x8_t wide = vmovl_u8(magnitudes), places = vmulq_n_u16(wide, 0x202);
        uint8x16_t looked_up = vqtbl1q_u8(table, vreinterpretq_u8_u16(vaddq_u16(places, vdupq_n_u16(0x100))));
        uint16x8_t normal = vaddq_u16(vshlq_n_u16(wide, 5), vdupq_n_u16((127 - 16) << 7));
        uint16x8_t numbers = vbslq_u16(vcltq_u16(wide, vdupq_n_u16(4)), vreinterpretq_u16_u8(looked_up), normal);
        numbers = vorrq_u16(numbers, vshlq_n_u16(vmovl_u8(vand_u8(eight, vdup_n_u8(0x80))), 8));
        uint16x8_t is_nan = vceqq_u16(numbers, vdupq_n_u16(0x8000)); /* what would be the negative zero */
        store_bf16(values + i, vorrq_u16(numbers, vandq_u16(is_nan, vdupq_n_u16(0x7fc0))));
    }
    f8_e5m2fnuz_dtype.kernels[CPU_PORTABLE].decode(bytes + i, values + i, n_blocks - i);
}

void f8_e8m0_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8) {
        uint8x8_t exponents = vld1_u8(bytes + i);
        uint8x8_t is_odd = vorr_u8(vceqz_u8(exponents), vceq_u8(exponents, vdup_n_u8(0xff)));
        uint16x8_t mantissas = vmovl_u8(vand_u8(is_odd, vdup_n_u8(0x40))); /* of 2^-127 and NaN */
        store_bf16(values + i, vorrq_u16(vshll_n_u8(exponents, 7), mantissas));
    }
    f8_e8m0_dtype.kernels[CPU_PORTABLE].decode(bytes + i, values + i, n_blocks - i);
}
