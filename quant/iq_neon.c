/* IQ1, IQ2 and IQ3, four tries or neighbours at a time. */
#define LANES         4
#define IQ_NAME(name) name##_neon
#define IQ1_LOOPS     iq1_neon_loops

#include "quant/vectors_neon.h"

static const vi lane_numbers = {0, 1, 2, 3};
static const vti table_places = {0, 1, 2, 3, 4, 5, 6, 7};

/* Returns numbers of a table of eight, by the lowest three bits. */
static inline vf v_look_up(vt table, vi index)
{
    const uint32x4_t bytes_of_place = vdupq_n_u32(0x03020100), bytes_of_number = vdupq_n_u32(0x04040404);
    uint8x16x2_t bytes;
    __builtin_memcpy(&bytes, &table, sizeof bytes);
    uint32x4_t places = vmlaq_u32(bytes_of_place, (uint32x4_t)(index & 7), bytes_of_number);
    return vreinterpretq_f32_u8(vqtbl2q_u8(bytes, vreinterpretq_u8_u32(places)));
}

/* Returns the least number; NaN only if all are NaN. */
static inline float v_least(vf values)
{
    return vminnmvq_f32(values);
}

static inline uint32_t v_lanes_unlike(vi a, vi b)
{
    return v_bits(vmvnq_u32(vceqq_s32(a, b)));
}

/* Shifts every lane one further, after the last lane of `before`. */
static inline vi v_one_later(vi before, vi lanes)
{
    return vextq_s32(before, lanes, LANES - 1);
}

/* Returns the first n lanes of `lanes`, the others of `rest`. */
static inline vi v_first_lanes(int n, vi lanes, vi rest)
{
    return vbslq_s32(vcgtq_s32(vdupq_n_s32(n), lane_numbers), lanes, rest);
}

static inline vt v_repeat_four(float a, float b, float c, float d)
{
    return (vt){a, b, c, d, a, b, c, d};
}

#include "quant/iq_simd.h"

#include "quant/iq1_simd.h"
