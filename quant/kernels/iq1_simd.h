/* The loops of iq1.h, with a way to divide a sub-block in each lane: included by iq_neon.c, iq_avx2.c and iq_avx512.c
 * after iq_simd.h.
 *
 * The sums of each way run in the order of the portable loops. The choice of a way depends on the order of ways, and on
 * rounding: so all that are nearly the best are compared one by one. */
#include "quant/blocks/iq1.h"

/* Like iq1_sort(), by counting: the place of a value is the number of values before it. A NaN is neither before nor
 * after anything. */
static inline void sort_n(const float *values, int n, uint8_t *order)
{
    enum { MOST_VECTORS_OF_VALUES = IQ1_S_SUB_ELEMENTS / LANES };
    vf lanes[MOST_VECTORS_OF_VALUES];
    vi before[MOST_VECTORS_OF_VALUES] = {{0}};
    int32_t places[IQ1_S_SUB_ELEMENTS];
    uint32_t numbers = UINT32_MAX;
    for (int v = 0; v < n / LANES; v++) {
        lanes[v] = v_load(values + v * LANES);
        numbers &= v_bits(v_equal(lanes[v], lanes[v])) | ~(UINT32_MAX >> (32 - LANES));
    }
    if (numbers != UINT32_MAX) {
        iq1_sort(values, n, order);
        return;
    }
#pragma GCC unroll 32
    for (int j = 0; j < n; j++)
        for (int v = 0; v < n / LANES; v++) {
            vf value = v_set(values[j]);
            vi is_equal = (value == lanes[v]) & (lane_numbers + v * LANES > j);
            before[v] -= j < v * LANES               ? value <= lanes[v]
                         : j < v * LANES + LANES - 1 ? (value < lanes[v]) | is_equal
                                                     : value < lanes[v];
        }
    memcpy(places, before, sizeof places);
    for (int i = 0; i < n; i++)
        order[places[i]] = (uint8_t)i;
}

/* Passes n as a constant, so that the compiler unrolls the loops. */
static void sort(const float *values, int n, uint8_t *order)
{
    if (n == IQ1_S_SUB_ELEMENTS)
        sort_n(values, IQ1_S_SUB_ELEMENTS, order);
    else
        sort_n(values, IQ1_M_SUB_ELEMENTS, order);
}

/* Sums of the first i values in ascending order, of w * x and of w, with room for a vector at the end, where the sums
 * are NaN. */
enum { S_ROOM = (IQ1_S_SUB_ELEMENTS + 1 + LANES) / LANES * LANES + LANES };
struct prefixes {
    float x[S_ROOM], w[S_ROOM];
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
        p->x[j] = p->w[j] = NAN;
    return usual && p->w[N] > 0x1p-50f && p->w[N] < 0x1p50f;
}

/* What the sums of a way consist of, by the place where a level begins, shifted up and shifted down. As neighbouring
 * levels differ by 1, the sums of w * q * x and of w * q * q are
 *
 *     (q[2] * x[N] - x[one]) - x[two]
 *     (q[2]^2 * w[N] - (q[1]^2 - q[0]^2) * w[one]) - (q[2]^2 - q[1]^2) * w[two] */
struct s_terms {
    float one_qx[2][S_ROOM], one_q2[2][S_ROOM], two_q2[2][S_ROOM];
};

static void find_s_terms(const struct prefixes *p, struct s_terms *terms)
{
    enum { N = IQ1_S_SUB_ELEMENTS };
    for (int down = 0; down < 2; down++) {
        const float *q = down ? iq1_down : iq1_up;
        float all_qx = q[2] * p->x[N], all_q2 = q[2] * q[2] * p->w[N];
        for (int j = 0; j < S_ROOM; j++) {
            terms->one_qx[down][j] = all_qx - p->x[j];
            terms->one_q2[down][j] = all_q2 - (q[1] * q[1] - q[0] * q[0]) * p->w[j];
            terms->two_q2[down][j] = (q[2] * q[2] - q[1] * q[1]) * p->w[j];
        }
    }
}

/* Gains of vectors of ways, in the portable order: with level 1 from each place on, and level 2 from the same place on
 * and from later ones. The gain of a way is the higher one of the two shifts. */
enum { S_MOST_VECTORS = (IQ1_S_SUB_ELEMENTS + 1) * S_ROOM / LANES };
struct s_gains {
    vf of[S_MOST_VECTORS];
    float most;
};

/* Computes gains without a branch that depends on values. They are off by less than ABOUT of them if they are near the
 * highest one:
 *
 * Rounding errors are below 2^-19 of the sum of all w * |x|, and below 2^-20 of w[N]. The best way's gain is at least
 * 0.6 of the former squared over the latter, as that of the way without level 1 between negative values and others. The
 * sum of w * q * q is at least w[N] / 64. So for a way that is nearly the best, that of w * q * x is at least 0.09 of
 * all. Then the errors are below 2^-15 for its square, and 2^-14 for the other sum, beside the quotient's. */
#define ABOUT (V_QUOTIENT_ERROR + 0x1p-13f)

static void find_gains(const struct prefixes *p, struct s_gains *gains)
{
    enum { N = IQ1_S_SUB_ELEMENTS };
    struct s_terms terms;
    vf most = v_set(0);
    int n = 0;
    find_s_terms(p, &terms);
    for (int one = 0; one <= N; one++)
        for (int first = one; first <= N; first += LANES, n++) {
            vf of[2];
            for (int down = 0; down < 2; down++) {
                vf sum_qx = v_set(terms.one_qx[down][one]) - v_load(p->x + first);
                vf sum_q2 = v_set(terms.one_q2[down][one]) - v_load(terms.two_q2[down] + first);
                of[down] = v_about_quotient(sum_qx * sum_qx, sum_q2);
            }
            gains->of[n] = v_max(of[0], of[1]);
            most = v_max(gains->of[n], most);
        }
    gains->most = -v_least(-most);
}

/* Tries one way, as the portable divide_s() does. */
static inline void try_way(const struct prefixes *p, int one, int two, struct iq1_division *division, float *best)
{
    enum { N = IQ1_S_SUB_ELEMENTS };
    for (unsigned down = 0; down < 2; down++) {
        const float *q = down ? iq1_down : iq1_up;
        float qx = p->x[one] * q[0] + (p->x[two] - p->x[one]) * q[1] + (p->x[N] - p->x[two]) * q[2];
        float q2 =
            p->w[one] * q[0] * q[0] + (p->w[two] - p->w[one]) * q[1] * q[1] + (p->w[N] - p->w[two]) * q[2] * q[2];
        if (!(qx * qx > *best * q2)) /* q2 is above 0: see find_gains() */
            continue;
        *division = (struct iq1_division){one, two, down, qx / q2};
        *best = division->scale * qx;
    }
}

/* Like the portable divide_s(), which takes every way that is better than all before. Ways whose gain is lower by more
 * than rounding errors cannot change the result, so only the others are tried. */
static bool divide_s(const float *values, const float *weights, const uint8_t *order, struct iq1_division *ret_division)
{
    enum { N = IQ1_S_SUB_ELEMENTS };
    struct prefixes prefixes;
    struct s_gains gains;
    float best = -FLT_MAX;
    gains.most = 0;
    if (sum_prefixes(values, weights, order, &prefixes))
        find_gains(&prefixes, &gains);
    if (!(gains.most > 0x1p-50f && gains.most < 0x1p50f))
        return iq1_portable_loops.divide_s(values, weights, order, ret_division);
    const vf enough = v_set(gains.most * (1 - 2 * ABOUT));
    for (int one = 0, n = 0; one <= N; one++)
        for (int first = one; first <= N; first += LANES, n++) {
            uint32_t left = ~v_lanes_not_above(gains.of[n], enough) & UINT32_MAX >> (32 - LANES);
            for (; left != 0; left &= left - 1)
                try_way(&prefixes, one, first + __builtin_ctz(left), ret_division, &best);
        }
    return true;
}

/* Returns a table for v_look_up() by three levels. */
static inline vt three_levels(float zero, float one, float two)
{
    return v_repeat_four(zero, one, two, two);
}

/* Sums of a way to divide the values of IQ1_M: for each way to shift the groups that of w * q * x, and then for each
 * that of w * q * q. */
enum { M_SUMS = 8, M_ROOM = (IQ1_M_SUB_ELEMENTS + LANES) / LANES * LANES };
typedef float m_sums __attribute__((vector_size(M_SUMS * sizeof(float))));

/* What each value adds to them at a level, in ascending order. */
struct m_terms {
    m_sums of[3][IQ1_M_SUB_ELEMENTS];
};

/* The numbers of a level in the second and in the first group of eight, by the bit of a move that shifts it. */
#define M_UP(level)       ((level)-1 + IQ1_SHIFT)
#define M_DOWN(level)     ((level)-1 - IQ1_SHIFT)
#define M_BY_TURNS(level) M_UP(level), M_DOWN(level), M_UP(level), M_DOWN(level)
#define M_IN_PAIRS(level) M_UP(level), M_UP(level), M_DOWN(level), M_DOWN(level)
static const m_sums m_numbers[2][3] = {
    {{M_BY_TURNS(0), M_BY_TURNS(0)}, {M_BY_TURNS(1), M_BY_TURNS(1)}, {M_BY_TURNS(2), M_BY_TURNS(2)}},
    {{M_IN_PAIRS(0), M_IN_PAIRS(0)}, {M_IN_PAIRS(1), M_IN_PAIRS(1)}, {M_IN_PAIRS(2), M_IN_PAIRS(2)}},
};

/* Returns false if the weights might make rounding matter more than usual. */
static bool find_m_terms(const float *values, const float *weights, const uint8_t *order, struct m_terms *terms)
{
    float total = 0;
    bool usual = true;
    for (int j = 0; j < IQ1_M_SUB_ELEMENTS; j++) {
        float value = values[order[j]], weight = weights[order[j]];
        usual &= weight >= 0;
        total += weight;
        for (int level = 0; level < 3; level++) {
            m_sums numbers = m_numbers[order[j] < IQ_GROUP][level];
            m_sums factors = {value, value, value, value, numbers[4], numbers[5], numbers[6], numbers[7]};
            terms->of[level][j] = weight * numbers * factors;
        }
    }
    return usual && total > 0x1p-50f && total < 0x1p50f;
}

/* Ways with level 2 from one place on, and level 1 from a place on for each lane. */
struct m_ways {
    int first_one, two;
    vf sums[M_SUMS];
};

/* Returns the lanes whose level 1 does not begin after level 2. */
static inline uint32_t m_lanes(const struct m_ways *ways)
{
    int last = ways->two - ways->first_one;
    return UINT32_MAX >> (31 - (last < LANES ? last : LANES - 1));
}

static inline vf m_gains(const struct m_ways *ways, int move)
{
    vf gains = ways->sums[move] * ways->sums[move] / ways->sums[4 + move];
    return (vf)v_first_lanes(ways->two - ways->first_one + 1, (vi)gains, (vi){0});
}

/* Adds the values of level 2 to the sums of all before. */
static inline void end_m_ways(const struct m_terms *terms, float (*before)[M_ROOM], struct m_ways *ways)
{
    vf sums[M_SUMS];
    for (int k = 0; k < M_SUMS; k++)
        sums[k] = v_load(before[k] + ways->first_one);
    for (int j = ways->two; j < IQ1_M_SUB_ELEMENTS; j++)
        for (int k = 0; k < M_SUMS; k++)
            sums[k] += v_set(terms->of[2][j][k]);
    for (int k = 0; k < M_SUMS; k++)
        ways->sums[k] = sums[k];
}

/* Computes the sums of all ways, and returns the number of vectors. Values are added one after the other, as in the
 * portable loops: those of level 0 and 1 once for all ways that have them in common. */
static int sum_m_ways(const struct m_terms *terms, struct m_ways *ways)
{
    float zeros[M_SUMS] = {0}, before[M_SUMS][M_ROOM] = {{0}};
    int n = 0;
    for (int two = 0; two <= IQ1_M_SUB_ELEMENTS; two++) {
        for (int k = 0; k < M_SUMS; k++)
            before[k][two] = zeros[k];
        for (int first = 0; first <= two; first += LANES, n++) {
            ways[n].first_one = first;
            ways[n].two = two;
            end_m_ways(terms, before, &ways[n]);
        }
        for (int k = 0; k < M_SUMS && two < IQ1_M_SUB_ELEMENTS; k++) {
            for (int first = 0; first <= two; first += LANES)
                v_store(before[k] + first, v_load(before[k] + first) + v_set(terms->of[1][two][k]));
            zeros[k] += terms->of[0][two][k];
        }
    }
    return n;
}

/* Finds the vectors of ways with a gain near or above the highest so far; returns their number. Starts where the
 * highest is likely, so that there are few. */
static int find_m_ways(const struct m_ways *ways, int n, uint8_t *near, float *ret_most)
{
    int n_near = 0;
    float most = 0;
    for (int i = 0; i < n; i++) {
        int at = (i + n / 2) % n;
        const struct m_ways *some = &ways[at];
        uint32_t better = 0;
        for (int move = 0; move < 4; move++)
            better |= v_better(some->sums[move], some->sums[4 + move], most * NEARLY);
        if ((better & m_lanes(some)) == 0)
            continue;
        vf least = -m_gains(some, 0);
        for (int move = 1; move < 4; move++)
            least = v_min(-m_gains(some, move), least);
        most = -v_least(least) > most ? -v_least(least) : most;
        near[n_near++] = (uint8_t)at;
    }
    *ret_most = most;
    return n_near;
}

/* Returns the lanes with a gain that is not below `most` by more than rounding. */
static inline uint32_t best_m_lanes(const struct m_ways *ways, float most)
{
    uint32_t lanes = 0;
    for (int move = 0; move < 4; move++)
        lanes |= ~v_lanes_not_above(m_gains(ways, move), most * NEARLY + (vf){0});
    return lanes & m_lanes(ways);
}

/* Like the portable divide_m(); as in divide_s(), only ways with a gain near the highest are compared. */
static bool divide_m(const float *values, const float *weights, const uint8_t *order, struct iq1_division *ret_division)
{
    enum { N = IQ1_M_SUB_ELEMENTS, MOST_WAYS = (N + 1) * M_ROOM / LANES };
    struct m_terms terms;
    struct m_ways ways[MOST_WAYS];
    uint8_t near[MOST_WAYS];
    uint32_t lanes[MOST_WAYS] = {0}, ones = 0;
    float best = -FLT_MAX, most = 0;
    int n = find_m_terms(values, weights, order, &terms) ? sum_m_ways(&terms, ways) : 0;
    int n_near = find_m_ways(ways, n, near, &most);
    if (!(most > 0x1p-50f && most < 0x1p50f))
        return iq1_portable_loops.divide_m(values, weights, order, ret_division);
    for (int i = 0; i < n_near; i++) {
        lanes[near[i]] = best_m_lanes(&ways[near[i]], most);
        ones |= lanes[near[i]] << ways[near[i]].first_one;
    }
    for (; ones != 0; ones &= ones - 1) /* in the order of the portable loops */
        for (int i = 0, one = __builtin_ctz(ones); i < n; i++) {
            const struct m_ways *some = &ways[i];
            int lane = one - some->first_one;
            if (lane < 0 || lane >= LANES || (lanes[i] >> lane & 1) == 0)
                continue;
            for (unsigned move = 0; move < 4; move++) {
                float qx = some->sums[move][lane], q2 = some->sums[4 + move][lane];
                if (!(q2 > 0 && qx * qx > best * q2))
                    continue;
                *ret_division = (struct iq1_division){one, some->two, move, qx / q2};
                best = ret_division->scale * qx;
            }
        }
    return true;
}

#if LANES == 16
/* Finds the nearest neighbour. If a table covers two components there are half as many lookups, but the order of sums
 * differs: then a neighbour is certain only if it is nearer by more than the difference, as in iq_simd.h. */
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
