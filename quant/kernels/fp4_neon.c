/* F4, MXFP4 and NVFP4: codes as fp4_avx2.c finds them, four at a time. */
#include "quant/blocks/dtype.h"
#include "quant/blocks/fp4.h"
#include "quant/kernels/neon.h"

enum { MXFP4_ELEMENTS = 32, MXFP4_QS = 1, MXFP4_BYTES = 17 };
enum { NVFP4_ELEMENTS = 64, SUB_ELEMENTS = 16, NVFP4_QS = 4, NVFP4_BYTES = 36 };

/* Adds the signs of values to codes other than 0. */
static inline uint32x4_t with_signs(uint32x4_t codes, float32x4_t values)
{
    uint32x4_t signs = vandq_u32(vshrq_n_u32(vreinterpretq_u32_f32(values), 28), vdupq_n_u32(8));
    return vorrq_u32(codes, vandq_u32(signs, vcgtq_u32(codes, vdupq_n_u32(0))));
}

static inline uint32x4_t codes_above(float32x4_t values, float scale)
{
    static const float midpoints[7] = {0.5f, 1.5f, 2.5f, 3.5f, 5, 7, 10};
    uint32x4_t codes = vdupq_n_u32(0);
    for (int i = 0; i < 7; i++) /* a mask is -1 */
        codes = vsubq_u32(codes, vcgtq_f32(vabsq_f32(values), vdupq_n_f32(midpoints[i] * scale)));
    return with_signs(codes, values);
}

encode_function mxfp4_encode_neon;

void mxfp4_encode_neon(const float *values, void *blocks, size_t n_blocks)
{
    uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += MXFP4_BYTES, values += MXFP4_ELEMENTS) {
        uint8x16_t codes[2];
        block[0] = mxfp4_exponent_of(largest_magnitude(values, MXFP4_ELEMENTS));
        float scale = mxfp4_half_scale(block[0]);
        for (int half = 0; half < 2; half++) {
            int32x4_t fours[4];
            for (int j = 0; j < 4; j++)
                fours[j] = vreinterpretq_s32_u32(codes_above(vld1q_f32(values + 16 * half + 4 * j), scale));
            codes[half] = low_bytes(fours);
        }
        vst1q_u8(block + MXFP4_QS, vorrq_u8(codes[0], vshlq_n_u8(codes[1], 4)));
    }
}

/* The first code of the numbers nearest to each value. */
static inline uint32x4_t nearest_codes(float32x4_t values, float scale)
{
    static const float doubled[] = {1, 2, 3, 4, 6, 8, 12};
    float32x4_t magnitudes = vabsq_f32(values), least = magnitudes;
    uint32x4_t codes = vdupq_n_u32(0);
    for (uint32_t i = 0; i < 7; i++) {
        float32x4_t distances = vabsq_f32(vsubq_f32(vdupq_n_f32(doubled[i] * scale), magnitudes));
        uint32x4_t nearer = vcltq_f32(distances, least);
        least = vbslq_f32(nearer, distances, least);
        codes = vbslq_u32(nearer, vdupq_n_u32(i + 1), codes);
    }
    return with_signs(codes, values);
}

encode_function nvfp4_encode_neon;

void nvfp4_encode_neon(const float *values, void *blocks, size_t n_blocks)
{
    uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += NVFP4_BYTES)
        for (int j = 0; j < NVFP4_ELEMENTS / SUB_ELEMENTS; j++, values += SUB_ELEMENTS) {
            int32x4_t fours[4];
            block[j] = nvfp4_scale_of(largest_magnitude(values, SUB_ELEMENTS) / 6);
            float scale = nvfp4_half_scale(block[j]);
            for (int k = 0; k < 4; k++)
                fours[k] = vreinterpretq_s32_u32(nearest_codes(vld1q_f32(values + 4 * k), scale));
            uint8x16_t codes = low_bytes(fours);
            vst1_u8(block + NVFP4_QS + 8 * j, vorr_u8(vget_low_u8(codes), vshl_n_u8(vget_high_u8(codes), 4)));
        }
}

decode_function nvfp4_decode_neon;

void nvfp4_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    int8x16_t doubled = vld1q_s8(mxfp4_doubled);
    for (size_t i = 0; i < n_blocks; i++, block += NVFP4_BYTES)
        for (int j = 0; j < NVFP4_ELEMENTS / SUB_ELEMENTS; j++, values += SUB_ELEMENTS) {
            uint8x8_t bytes = vld1_u8(block + NVFP4_QS + 8 * j);
            uint8x16_t codes = vcombine_u8(vand_u8(bytes, vdup_n_u8(15)), vshr_n_u8(bytes, 4));
            store_scaled(values, vqtbl1q_s8(doubled, codes), nvfp4_half_scale(block[j]));
        }
}

decode_function f4_decode_neon;

extern const struct dtype f4_dtype;

/* Looks up the upper bytes of F16 numbers; the lower ones are 0. */
void f4_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    static const uint8_t upper_bytes[16] = {0x00, 0x38, 0x3c, 0x3e, 0x40, 0x42, 0x44, 0x46,
                                            0x80, 0xb8, 0xbc, 0xbe, 0xc0, 0xc2, 0xc4, 0xc6};
    const uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8) {
        uint8x8_t packed = vld1_u8(bytes + i), low = vand_u8(packed, vdup_n_u8(15)), high = vshr_n_u8(packed, 4);
        uint8x8x2_t codes = vzip_u8(low, high);
        for (int half = 0; half < 2; half++) {
            uint8x8_t upper = vqtbl1_u8(vld1q_u8(upper_bytes), codes.val[half]);
            float16x8_t numbers = vreinterpretq_f16_u16(vshll_n_u8(upper, 8));
            vst1q_f32(values + 2 * i + 8 * (size_t)half, vcvt_f32_f16(vget_low_f16(numbers)));
            vst1q_f32(values + 2 * i + 8 * (size_t)half + 4, vcvt_high_f32_f16(numbers));
        }
    }
    f4_dtype.kernels[CPU_PORTABLE].decode(bytes + i, values + 2 * i, n_blocks - i);
}
