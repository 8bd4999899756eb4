/* The K formats, four sub-blocks at a time. */
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
