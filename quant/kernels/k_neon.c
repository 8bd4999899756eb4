/* The K formats, four sub-blocks at a time. */
#include "quant/blocks/f16.h"
#include "quant/blocks/k_format.h"
#include "quant/kernels/neon.h"

#define LANES        4
#define K_NAME(name) name##_neon

#include "quant/blocks/k_search.h"
#include "quant/blocks/q4_q5.h"
#include "quant/kernels/vectors_neon.h"

#include <string.h>

/* Rounds LANES numbers and stores how far they are above `low`, an even number, as bytes. */
static inline void v_store_bytes(vf numbers, int low, uint8_t *out)
{
    uint16x4_t words = vmovn_u32(vreinterpretq_u32_f32(numbers + (K_ROUND - (float)low)));
    uint32_t bytes = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(words, words))), 0);
    memcpy(out, &bytes, sizeof bytes);
}

/* Stores LANES numbers like f16_store(). */
static inline void v_store_halves(vf numbers, uint16_t *halves)
{
    for (int i = 0; i < LANES; i++)
        f16_store(halves + i, numbers[i]);
}

/* Stores 32 levels as q45_pack_levels() does. */
static inline void v_store_levels(const struct q45_format *format, const vf levels[8], uint8_t *block)
{
    uint8_t bytes[32];
    for (int i = 0; i < 8; i++)
        v_store_bytes(levels[i], 0, bytes + i * LANES);
    q45_pack_levels(format, bytes, block);
}

/* Loads four values of a row; a row has `length` values. */
static inline vf v_load_quads(const float *rows, int length)
{
    (void)length;
    return v_load(rows);
}

#include "quant/kernels/k_simd.h"

#include "quant/kernels/q4_q5_simd.h"

/* Decoders of Q4_K, Q5_K and Q6_K, 16 levels at a time; the files of the formats describe their bytes. */

enum { SUB_ELEMENTS = 32, AT_ONCE = 16 };

/* Returns the bits of each of 16 bytes from `shift` up, as many as `mask` has. */
static inline uint8x16_t bits_of(const uint8_t *bytes, int shift, uint8_t mask)
{
    return vandq_u8(vshlq_u8(vld1q_u8(bytes), vdupq_n_s8((int8_t)-shift)), vdupq_n_u8(mask));
}

static inline void store_above(float *values, uint8x16_t levels, float scale, float minimum)
{
    for (int i = 0; i < AT_ONCE / 4; i++) {
        float32x4_t scaled = vmulq_n_f32(four_levels(vreinterpretq_s8_u8(levels), i), scale);
        vst1q_f32(values + 4 * i, vsubq_f32(scaled, vdupq_n_f32(minimum)));
    }
}

static inline void decode_q4_k(const uint8_t *block, float *values)
{
    enum { QS = 16 };
    float scales[Q45_SUB_BLOCKS], minimums[Q45_SUB_BLOCKS];
    q45_load_scales(block, scales, minimums);
    for (int j = 0; j < Q45_SUB_BLOCKS; j++)
        for (int i = 0; i < SUB_ELEMENTS; i += AT_ONCE, values += AT_ONCE)
            store_above(values, bits_of(block + QS + j / 2 * 32 + i, j % 2 * 4, 15), scales[j], minimums[j]);
}

static inline void decode_q5_k(const uint8_t *block, float *values)
{
    enum { QH = 16, QS = 48 };
    float scales[Q45_SUB_BLOCKS], minimums[Q45_SUB_BLOCKS];
    q45_load_scales(block, scales, minimums);
    for (int j = 0; j < Q45_SUB_BLOCKS; j++)
        for (int i = 0; i < SUB_ELEMENTS; i += AT_ONCE, values += AT_ONCE) {
            uint8x16_t low = bits_of(block + QS + j / 2 * 32 + i, j % 2 * 4, 15);
            uint8x16_t high = vshlq_n_u8(bits_of(block + QH + i, j, 1), 4);
            store_above(values, vorrq_u8(low, high), scales[j], minimums[j]);
        }
}

static inline void decode_q6_k(const uint8_t *block, float *values)
{
    enum { QH = 128, SCALES = 192, D = 208 };
    float d = f16_load(block + D);
    const int8_t *shares = (const int8_t *)block + SCALES;
    for (int j = 0; j < K_ELEMENTS / SUB_ELEMENTS; j++) {
        int half = j / 4, quarter = j % 4;
        for (int i = 0; i < SUB_ELEMENTS; i += AT_ONCE, values += AT_ONCE) {
            uint8x16_t low = bits_of(block + 64 * half + quarter % 2 * 32 + i, quarter / 2 * 4, 15);
            uint8x16_t high = vshlq_n_u8(bits_of(block + QH + 32 * half + i, quarter * 2, 3), 4);
            int8x16_t levels = vsubq_s8(vreinterpretq_s8_u8(vorrq_u8(low, high)), vdupq_n_s8(32));
            store_scaled(values, levels, d * (float)shares[2 * j + i / AT_ONCE]);
        }
    }
}

DEFINE_K_DECODER(q4_k, neon, 144)
DEFINE_K_DECODER(q5_k, neon, 176)
DEFINE_K_DECODER(q6_k, neon, 210)
