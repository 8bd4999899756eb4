#define LANES 4

#include "quant/blocks/iq4.h"
#include "quant/blocks/weights.h"
#include "quant/kernels/vectors_neon.h"

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

/* What each value adds to the sums, and the midpoint that decides. */
struct choices {
    float midpoint[IQ4_ELEMENTS];
    struct terms {
        float first[IQ4_ELEMENTS];                      /* of the first try */
        float below[IQ4_ELEMENTS], above[IQ4_ELEMENTS]; /* of the others, below the midpoint and from it on */
    } qx, q2;
};

/* The midpoint above each level, which is negated; none is above the last. */
static inline vf midpoint_of(vi level)
{
    const float last[] = {iq4_midpoints[12], iq4_midpoints[13], iq4_midpoints[14], INFINITY};
    const uint8x16x4_t table = {{vreinterpretq_u8_f32(v_load(iq4_midpoints)),
                                 vreinterpretq_u8_f32(v_load(iq4_midpoints + 4)),
                                 vreinterpretq_u8_f32(v_load(iq4_midpoints + 8)), vreinterpretq_u8_f32(v_load(last))}};
    return vreinterpretq_f32_u8(vqtbl4q_u8(table, bytes_of(level)));
}

static inline void set_terms(struct terms *terms, int at, vf weight, const vf q[3], const vf factor[3])
{
    v_store(terms->first + at, weight * q[0] * factor[0]);
    v_store(terms->below + at, weight * q[1] * factor[1]);
    v_store(terms->above + at, weight * q[2] * factor[2]);
}

static inline void find_choices(const float *values, const float *weights, const float inverses[IQ4_TRIES],
                                struct choices *choices)
{
    const struct midpoints midpoints = load_midpoints();
    for (int i = 0; i < IQ4_ELEMENTS; i += LANES) {
        vf value = v_load(values + i), weight = v_load(weights + i);
        vf a = inverses[1] * value, b = inverses[IQ4_TRIES - 1] * value;
        vi first = find_nearest(inverses[0] * value, &midpoints);
        vi least = find_nearest(vminq_f32(a, b), &midpoints);
        v_store(choices->midpoint + i, midpoint_of(least));
        const vf q[3] = {number_of(first), number_of(least), number_of(least - 1)};
        set_terms(&choices->qx, i, weight, q, (const vf[3]){value, value, value});
        set_terms(&choices->q2, i, weight, q, q);
    }
}

/* The terms of four tries for the value at a place, of which the first may be of all tries the first. */
static inline vf terms_at(const struct terms *terms, int at, vm above, bool is_first)
{
    vf of_others = v_select(above, v_set(terms->above[at]), v_set(terms->below[at]));
    return is_first ? vld1q_lane_f32(&terms->first[at], of_others, 0) : of_others;
}

static float find_largest(const float *values)
{
    return largest_by_magnitude(values, IQ4_ELEMENTS);
}

static void sum_up(const float *values, const float *weights, const float inverses[IQ4_TRIES],
                   struct iq4_sums *ret_sums)
{
    enum { VECTORS = IQ4_TRIES / LANES };
    struct choices choices;
    vf sum_qx[VECTORS], sum_q2[VECTORS];
    find_choices(values, weights, inverses, &choices);
    for (int v = 0; v < VECTORS; v++)
        sum_qx[v] = sum_q2[v] = v_set(0);
    for (int i = 0; i < IQ4_ELEMENTS; i++)
        for (int v = 0; v < VECTORS; v++) {
            vm above = vcgeq_f32(v_load(inverses + v * LANES) * values[i], v_set(choices.midpoint[i]));
            sum_qx[v] += terms_at(&choices.qx, i, above, v == 0);
            sum_q2[v] += terms_at(&choices.q2, i, above, v == 0);
        }
    for (int v = 0; v < VECTORS; v++) {
        v_store(ret_sums->qx + v * LANES, sum_qx[v]);
        v_store(ret_sums->q2 + v * LANES, sum_q2[v]);
    }
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

const struct iq4_loops iq4_neon_loops = {find_largest, sum_up, quantize};
