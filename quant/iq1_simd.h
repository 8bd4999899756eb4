/* The loops of iq1.h, with a way to divide a sub-block in each lane: included by iq_neon.c, iq_avx2.c and iq_avx512.c
 * after iq_simd.h.
 *
 * The sums of each way run in the order of the portable loops. The choice of a way depends on the order of ways, and on
 * rounding: so if any of a vector is better than the best so far, they are compared one by one. */
#include "quant/iq1.h"

/* Takes every way of the first `n_lanes` lanes that is better than all before it, in order of lanes and then of shifts;
 * ones[] and twos[] are the ways of the lanes. Most often none is. */
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

/* Like iq1_sort(), by counting: the place of a value is the number of values before it. A NaN is neither before nor
 * after anything. */
static void sort(const float *values, int n, uint8_t *order)
{
    for (int i = 0; i < n; i++) {
        uint32_t less = 0, equal = 0;
        for (int j = 0; j < n; j += LANES) {
            less |= v_bits(v_less(v_load(values + j), v_set(values[i]))) << j;
            equal |= v_bits(v_equal(v_load(values + j), v_set(values[i]))) << j;
        }
        if ((equal >> i & 1) == 0) {
            iq1_sort(values, n, order);
            return;
        }
        order[__builtin_popcount(less) + __builtin_popcount(equal & (((uint32_t)1 << i) - 1))] = (uint8_t)i;
    }
}

/* Sums of the first i values in ascending order, with room for a vector at the end; and the share of the values from
 * place i on in the sums of a way, shifted up and shifted down. */
enum { S_ROOM = IQ1_S_SUB_ELEMENTS + 1 + LANES, IQ1_S_MOST_WAYS = (IQ1_S_SUB_ELEMENTS + 1) * S_ROOM / LANES };
struct prefixes {
    float x[S_ROOM], w[S_ROOM], high_qx[2][S_ROOM], high_q2[2][S_ROOM];
};

/* Computes the sums; returns false if the weights might make rounding matter more than usual. */
static bool sum_prefixes(const float *values, const float *weights, const uint8_t *order, struct prefixes *p)
{
    enum { N = IQ1_S_SUB_ELEMENTS };
    bool usual = true;
    p->x[0] = p->w[0] = 0;
    for (int j = 0; j < N; j++) {
        p->x[j + 1] = p->x[j] + weights[order[j]] * values[order[j]];
        p->w[j + 1] = p->w[j] + weights[order[j]];
        usual &= weights[j] >= 0;
    }
    for (int j = N + 1; j < S_ROOM; j++)
        p->x[j] = p->w[j] = 0;
    for (int down = 0; down < 2; down++) {
        float most = down ? iq1_down[2] : iq1_up[2];
        for (int j = 0; j < S_ROOM; j++) {
            p->high_qx[down][j] = (p->x[N] - p->x[j]) * most;
            p->high_q2[down][j] = (p->w[N] - p->w[j]) * most * most;
        }
    }
    return usual && p->w[N] > 0x1p-50f && p->w[N] < 0x1p50f;
}

/* Candidates for the best way: their sums, shifted up and shifted down. */
struct ways {
    int one, first;
    vf sums_qx[2], sums_q2[2];
};

/* Computes the sums of all ways with level 1 from place `one` on, and level 2 from one of the places from `first` on.
 * The two values of level 1 differ in sign alone. */
static inline void sum_ways(const struct prefixes *p, int one, int first, vf sums_qx[2], vf sums_q2[2])
{
    vf middle_qx = (v_load(p->x + first) - p->x[one]) * iq1_up[1];
    vf middle_q2 = (v_load(p->w + first) - p->w[one]) * iq1_up[1] * iq1_up[1];
    for (int down = 0; down < 2; down++) {
        float least = down ? iq1_down[0] : iq1_up[0], low_qx = p->x[one] * least, low_q2 = p->w[one] * least * least;
        sums_qx[down] = (down ? low_qx - middle_qx : low_qx + middle_qx) + v_load(p->high_qx[down] + first);
        sums_q2[down] = low_q2 + middle_q2 + v_load(p->high_q2[down] + first);
    }
}

/* Computes the gain of each way; 0 after the last one. */
static inline vf find_gains(const struct ways *ways, int down)
{
    vf gains = ways->sums_qx[down] * ways->sums_qx[down] / ways->sums_q2[down];
    return (vf)v_first_lanes(IQ1_S_SUB_ELEMENTS + 1 - ways->first, (vi)gains, (vi){0});
}

/* Collects vectors of ways with a gain near or above the highest so far; returns their number. Starts with likely ways,
 * so that few are collected; *ret_turn is the place of the first vector in portable order. */
static int find_ways(const struct prefixes *prefixes, struct ways *ways, int *ret_turn, float *ret_most)
{
    enum { N = IQ1_S_SUB_ELEMENTS, LIKELY = 9 };
    float most = 0;
    int n = 0;
    for (int i = 0; i <= N; i++) {
        int one = (i + LIKELY) % (N + 1);
        *ret_turn = one == 0 ? n : *ret_turn;
        for (int first = one; first <= N; first += LANES) {
            struct ways *some = &ways[n];
            uint32_t better = 0, lanes = UINT32_MAX >> (N + 1 - first < LANES ? 32 - (N + 1 - first) : 32 - LANES);
            sum_ways(prefixes, one, first, some->sums_qx, some->sums_q2);
            for (int down = 0; down < 2; down++)
                better |= v_better(some->sums_qx[down], some->sums_q2[down], most * NEARLY);
            if ((better & lanes) == 0)
                continue;
            some->one = one;
            some->first = first;
            float gain = -v_least(v_min(-find_gains(some, 0), -find_gains(some, 1)));
            most = gain > most ? gain : most;
            n++;
        }
    }
    *ret_most = most;
    return n;
}

/* Like the portable divide_s(), which takes every way that is better than all before. Ways whose gain is lower by more
 * than rounding errors cannot change the result, so only the others are compared. */
static bool divide_s(const float *values, const float *weights, const uint8_t *order, struct iq1_division *ret_division)
{
    struct prefixes prefixes;
    struct ways ways[IQ1_S_MOST_WAYS];
    float best = -FLT_MAX, most = 0;
    int turn = 0;
    int n = sum_prefixes(values, weights, order, &prefixes) ? find_ways(&prefixes, ways, &turn, &most) : 0;
    if (!(most > 0x1p-50f && most < 0x1p50f))
        return iq1_portable_loops.divide_s(values, weights, order, ret_division);
    for (int i = 0; i < n; i++) {
        const struct ways *some = &ways[(turn + i) % n];
        uint32_t close[2];
        for (int down = 0; down < 2; down++)
            close[down] =
                ~v_lanes_not_above(find_gains(some, down), most * NEARLY + (vf){0}) & UINT32_MAX >> (32 - LANES);
        for (uint32_t left = close[0] | close[1]; left != 0; left &= left - 1)
            for (unsigned down = 0, lane = (unsigned)__builtin_ctz(left); down < 2; down++) {
                float qx = some->sums_qx[down][lane], q2 = some->sums_q2[down][lane];
                if ((close[down] >> lane & 1) == 0 || !(qx * qx > best * q2))
                    continue;
                *ret_division = (struct iq1_division){some->one, some->first + (int)lane, down, qx / q2};
                best = ret_division->scale * qx;
            }
    }
    return true;
}

/* Returns a table for v_look_up() by three levels. */
static inline vt three_levels(float zero, float one, float two)
{
    return v_repeat_four(zero, one, two, two);
}

/* The contribution of a value to the sums by its level, for groups shifted up and groups shifted down. */
struct shares {
    vt qx[2], q2[2];
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

#if LANES == 16
/* Finds the nearest neighbour. If a table covers two components there are half as many lookups, but the order of sums
 * differs: then a neighbour is certain only if it is nearer by more than the difference, as in iq_lines_simd.h. */
static inline bool find_nearest(const uint16_t *packed, int count, const struct group *group, const float *numbers,
                                float scale, uint32_t *ret_place)
{
    vf terms[4], least = INFINITY + (vf){0};
    vf first_numbers = three_levels(numbers[0], numbers[1], numbers[2]);
    vf second_numbers = v_look_up(first_numbers, lane_numbers >> 2);
    _Alignas(64) float distances[MOST_NEIGHBOURS];
    int n = 0;
    for (int t = 0; t < 4; t++) {
        vf first = scale * first_numbers - group->values[2 * t],
           second = scale * second_numbers - group->values[2 * t + 1];
        terms[t] = group->factors[2 * t] * first * first + group->factors[2 * t + 1] * second * second;
    }
    for (int at = 0; at < count; at += LANES) {
        vi levels = v_load_words(packed + at);
        vf distance = v_look_up(terms[0], levels) + v_look_up(terms[1], levels >> 4) +
                      (v_look_up(terms[2], levels >> 8) + v_look_up(terms[3], levels >> 12));
        distance = (vf)v_first_lanes(count - at, (vi)distance, INFINITE_BITS + (vi){0});
        v_store(distances + at, distance);
        least = v_min(distance, least);
    }
    float most = v_least(least) + scale * tolerance_of(group, 1 + IQ1_SHIFT, scale, scale, 8);
    for (int at = 0; at < count; at += LANES) {
        uint32_t near = v_lanes_not_above(v_load(distances + at), most + (vf){0});
        *ret_place = near != 0 ? (uint32_t)(at + __builtin_ctz(near)) : *ret_place;
        n += __builtin_popcount(near);
    }
    return n == 1;
}
#endif

static unsigned nearest(const struct grid_search *search, unsigned code, const float *values, const float *weights,
                        const float *numbers, float scale)
{
    const struct group group = {values, NULL, weights};
    uint32_t begin = search->first[code], place = 0;
    bool found = false;
#if LANES == 16
    found =
        find_nearest(search->packed + begin, (int)(search->first[code + 1] - begin), &group, numbers, scale, &place);
#endif
    if (!found)
        place = nearest_neighbour(search, code, &group, three_levels(numbers[0], numbers[1], numbers[2]), scale, 8);
    return (unsigned)search->index[code_of_packed(search->packed[begin + place], 8)];
}

const struct iq1_loops IQ1_LOOPS = {sort, divide_s, divide_m, nearest};
