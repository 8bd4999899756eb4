/* The loops of iq1.h with ways to divide a sub-block side by side, one a lane: included by iq_avx2.c and iq_avx512.c
 * after iq_simd.h.
 *
 * The sums of each way run in the order of the portable loops. Which way is kept depends on the order of ways, and on
 * rounding: so where any of some is better than the best so far they are gone through one by one. */
#include "quant/iq1.h"

/* Takes every way of the first `n_lanes` lanes that is better than all before it, in order of lanes and then of moves;
 * ones[] and twos[] say what a lane is. Most often none is. */
static inline bool take_better(const vf *sums_qx, const vf *sums_q2, int n_moves, int n_lanes, const int *ones,
                               const int *twos, float *best, struct iq1_division *division)
{
    uint32_t better = 0;
    bool found = false;
    for (int move = 0; move < n_moves; move++)
        better |= v_better(sums_qx[move], sums_q2[move], *best);
    if (better == 0 || __builtin_ctz(better) >= n_lanes)
        return false;
    float qx[4][LANES], q2[4][LANES];
    memcpy(qx, sums_qx, (size_t)n_moves * sizeof *qx);
    memcpy(q2, sums_q2, (size_t)n_moves * sizeof *q2);
    for (int lane = __builtin_ctz(better); lane < n_lanes; lane++)
        for (int move = 0; move < n_moves; move++) {
            if (!(q2[move][lane] > 0 && qx[move][lane] * qx[move][lane] > *best * q2[move][lane]))
                continue;
            *division = (struct iq1_division){ones[lane], twos[lane], (unsigned)move, qx[move][lane] / q2[move][lane]};
            *best = division->scale * qx[move][lane];
            found = true;
        }
    return found;
}

/* iq1_sort() by counting: the place of a value is the number of those before it. A NaN is not before or after anything.
 */
static void sort(const float *values, int n, uint8_t *order)
{
    for (int i = 0; i < n; i++) {
        uint32_t less = 0, equal = 0;
        for (int j = 0; j < n; j += LANES) {
            less |= v_lanes_less(v_load(values + j), values[i]) << j;
            equal |= v_lanes_equal(v_load(values + j), values[i]) << j;
        }
        if ((equal >> i & 1) == 0) {
            iq1_sort(values, n, order);
            return;
        }
        order[__builtin_popcount(less) + __builtin_popcount(equal & (((uint32_t)1 << i) - 1))] = (uint8_t)i;
    }
}

static bool divide_s(const float *values, const float *weights, const uint8_t *order, struct iq1_division *ret_division)
{
    enum { N = IQ1_S_SUB_ELEMENTS };
    int numbers[N + 1 + LANES];
    float sums_x[N + 1 + LANES] = {0}, sums_w[N + 1 + LANES] = {0}, best = -FLT_MAX;
    bool found = false;
    for (int j = 0; j < N; j++) {
        sums_x[j + 1] = sums_x[j] + weights[order[j]] * values[order[j]];
        sums_w[j + 1] = sums_w[j] + weights[order[j]];
    }
    for (int i = 0; i < N + 1 + LANES; i++)
        numbers[i] = i;
    for (int one = 0; one <= N; one++)
        for (int first = one; first <= N; first += LANES) {
            vf x = v_load(sums_x + first), w = v_load(sums_w + first), sums_qx[2], sums_q2[2];
            for (int down = 0; down < 2; down++) {
                const float *p = down ? iq1_down : iq1_up;
                sums_qx[down] = sums_x[one] * p[0] + (x - sums_x[one]) * p[1] + (sums_x[N] - x) * p[2];
                sums_q2[down] =
                    sums_w[one] * p[0] * p[0] + (w - sums_w[one]) * p[1] * p[1] + (sums_w[N] - w) * p[2] * p[2];
            }
            int n_lanes = N + 1 - first < LANES ? N + 1 - first : LANES;
            if (!take_better(sums_qx, sums_q2, 2, n_lanes, numbers, numbers + first, &best, ret_division))
                continue;
            ret_division->first_one = one;
            found = true;
        }
    return found;
}

/* A table for v_look_up() of what three levels give. */
static inline vf three_levels(float zero, float one, float two)
{
    return v_repeat_four(zero, one, two, two);
}

/* What a value adds to the sums by its level, where its group is moved up and where it is moved down. */
struct shares {
    vf qx[2], q2[2];
};

static inline struct shares find_shares(float value, float weight)
{
    struct shares shares;
    for (int down = 0; down < 2; down++) {
        const float *p = down ? iq1_down : iq1_up;
        shares.qx[down] = three_levels(weight * p[0] * value, weight * p[1] * value, weight * p[2] * value);
        shares.q2[down] = three_levels(weight * p[0] * p[0], weight * p[1] * p[1], weight * p[2] * p[2]);
    }
    return shares;
}

static bool divide_m(const float *values, const float *weights, const uint8_t *order, struct iq1_division *ret_division)
{
    enum { N = IQ1_M_SUB_ELEMENTS, WAYS = (N + 1) * (N + 2) / 2, ROOM = (WAYS + LANES - 1) / LANES * LANES };
    int ones[ROOM] = {0}, twos[ROOM] = {0}, n_ways = 0;
    struct shares shares[N];
    float best = -FLT_MAX;
    bool found = false;
    for (int one = 0; one <= N; one++)
        for (int two = one; two <= N; two++, n_ways++) {
            ones[n_ways] = one;
            twos[n_ways] = two;
        }
    for (int j = 0; j < N; j++)
        shares[j] = find_shares(values[order[j]], weights[order[j]]);
    for (int first = 0; first < WAYS; first += LANES) {
        vi one, two;
        vf sums_qx[4] = {0}, sums_q2[4] = {0};
        memcpy(&one, ones + first, sizeof one);
        memcpy(&two, twos + first, sizeof two);
        for (int j = 0; j < N; j++) {
            vi level = -((one <= j) + (two <= j));
            vf qx[2], q2[2];
            for (int down = 0; down < 2; down++) {
                qx[down] = v_look_up(shares[j].qx[down], level);
                q2[down] = v_look_up(shares[j].q2[down], level);
            }
            for (unsigned move = 0; move < 4; move++) {
                unsigned down = move >> (order[j] < IQ_GROUP) & 1;
                sums_qx[move] += qx[down];
                sums_q2[move] += q2[down];
            }
        }
        int n_lanes = WAYS - first < LANES ? WAYS - first : LANES;
        found |= take_better(sums_qx, sums_q2, 4, n_lanes, ones + first, twos + first, &best, ret_division);
    }
    return found;
}

static unsigned nearest(const struct grid_search *search, unsigned code, const float *values, const float *weights,
                        const float *numbers, float scale)
{
    const struct group group = {values, NULL, weights};
    vf table = three_levels(numbers[0], numbers[1], numbers[2]);
    return search->neighbour[search->first[code] + nearest_neighbour(search, code, &group, table, scale, 8)];
}

const struct iq1_loops IQ1_LOOPS = {sort, divide_s, divide_m, nearest};
