/* The loops of iq1.h, with a way to divide a sub-block in each lane: included by iq_neon.c, iq_avx2.c and iq_avx512.c
 * after iq_simd.h.
 *
 * The sums of each way run in the order of the portable loops. The choice of a way depends on the order of ways, and on
 * rounding: so all that are nearly the best are compared one by one. */
#include "quant/iq1.h"

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
