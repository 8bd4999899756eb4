#define LANES 4

#include "quant/iq4.h"
#include "quant/vectors_neon.h"
#include "quant/weights.h"

/* The midpoints by the step of the bisection that compares them. */
struct midpoints {
    vf quarters[2];
    uint8x16_t eighths;
    uint8x16x2_t sixteenths;
};

static inline struct midpoints load_midpoints(void)
{
    const float *m = iq4_midpoints;
    const float eighths[] = {m[1], m[5], m[9], m[13]},
                sixteenths[] = {m[0], m[2], m[4], m[6], m[8], m[10], m[12], m[14]};
    struct midpoints loaded = {.quarters = {v_set(m[3]), v_set(m[11])}};
    loaded.eighths = vreinterpretq_u8_f32(v_load(eighths));
    loaded.sixteenths.val[0] = vreinterpretq_u8_f32(v_load(sixteenths));
    loaded.sixteenths.val[1] = vreinterpretq_u8_f32(v_load(sixteenths + 4));
    return loaded;
}

/* Returns the bytes of number -n of a table, for each lane. */
static inline uint8x16_t bytes_of(vi n)
{
    return vreinterpretq_u8_s32(vmlsq_s32(vdupq_n_s32(0x03020100), n, vdupq_n_s32(0x04040404)));
}

/* Returns the level nearest to each value, negated. Found by bisection: comparisons, which give -1, select the next
 * midpoint. */
static inline vi find_nearest(vf value, const struct midpoints *midpoints)
{
    vm half = vcgeq_f32(value, v_set(iq4_midpoints[7]));
    vm quarter = vcgeq_f32(value, v_select(half, midpoints->quarters[1], midpoints->quarters[0]));
    vi upper = (vi)(half + half + quarter);
    vm eighth = vcgeq_f32(value, vreinterpretq_f32_u8(vqtbl1q_u8(midpoints->eighths, bytes_of(upper))));
    vi pair = upper + upper + (vi)eighth;
    vm sixteenth = vcgeq_f32(value, vreinterpretq_f32_u8(vqtbl2q_u8(midpoints->sixteenths, bytes_of(pair))));
    return pair + pair + (vi)sixteenth;
}

/* Returns the values of levels that are negated. */
static inline vf number_of(vi level)
{
    uint8x16_t top = vreinterpretq_u8_s32(vmlsq_s32(vdupq_n_s32(0x00ffffff), level, vdupq_n_s32(1 << 24)));
    int8x16_t numbers = vqtbl1q_s8(vld1q_s8(iq4_levels), top);
    return vcvtq_n_f32_s32(vreinterpretq_s32_s8(numbers), 24);
}

static float search(const float *values, const float *weights)
{
    enum { VECTORS = IQ4_TRIES / LANES };
    float largest = largest_by_magnitude(values, IQ4_ELEMENTS);
    if (fabsf(largest) < IQ4_NEGLIGIBLE)
        return 0;
    const struct midpoints midpoints = load_midpoints();
    float inverses[IQ4_TRIES], sums_qx[IQ4_TRIES], sums_q2[IQ4_TRIES];
    vf inverse[VECTORS], sum_qx[VECTORS], sum_q2[VECTORS];
    iq4_inverses(largest, inverses);
    for (int v = 0; v < VECTORS; v++) {
        inverse[v] = v_load(inverses + v * LANES);
        sum_qx[v] = sum_q2[v] = v_set(0);
    }
    for (int i = 0; i < IQ4_ELEMENTS; i++)
        for (int v = 0; v < VECTORS; v++) {
            vf q = number_of(find_nearest(inverse[v] * values[i], &midpoints)), weighted = weights[i] * q;
            sum_qx[v] += weighted * values[i];
            sum_q2[v] += weighted * q;
        }
    for (int v = 0; v < VECTORS; v++) {
        v_store(sums_qx + v * LANES, sum_qx[v]);
        v_store(sums_q2 + v * LANES, sum_q2[v]);
    }
    return iq4_best_scale(sums_qx, sums_q2);
}

static void quantize(const float *values, float inverse, uint8_t levels[IQ4_ELEMENTS])
{
    const struct midpoints midpoints = load_midpoints();
    for (int i = 0; i < IQ4_ELEMENTS; i += 8) {
        vi first = find_nearest(inverse * v_load(values + i), &midpoints);
        vi second = find_nearest(inverse * v_load(values + i + LANES), &midpoints);
        int16x8_t negated = vcombine_s16(vmovn_s32(first), vmovn_s32(second));
        vst1_u8(levels + i, vreinterpret_u8_s8(vmovn_s16(vnegq_s16(negated))));
    }
}

const struct iq4_loops iq4_neon_loops = {search, quantize};
