/* The search of iq_format.h with one try a lane: included by iq_neon.c, iq_avx2.c and iq_avx512.c, which define LANES,
 * IQ_NAME(name) for the names of functions, the types vf and vi (LANES numbers) and vt (a table) with their primitives,
 * and table_places.
 *
 * Every lane computes its try in iq_format.c's order of operations, so the bits are the same. As the scale grows, the
 * levels of a group go down one by one, so neighbouring tries mostly have equal levels: a run of them is snapped to the
 * grid together. */
#include "quant/blocks/iq_format.h"

#include <float.h>
#include <string.h>

enum { MOST_TRIES = 32, MOST_VECTORS = MOST_TRIES / LANES, MOST_GROUPS = 8, INFINITE_BITS = 0x7f800000 };

/* The point of a try for a group: its packed levels, and whether the levels before snapping were off the grid. */
enum { CHOICE_OFF_GRID = 1 << 16 };

/* If the gains of two tries, from their sums of w q x and w q q, differ by more than this factor, neither the order of
 * operations nor the order of tries matters. The square of one sum divided by the other is within 2 u of its true value
 * (u = 2^-24), and so is the gain that a search keeps; its comparison is within 2 u, too. */
#define NEARLY (1 - 0x1p-20f)

struct tries {
    int n;
    vf inverse[MOST_VECTORS], sum_qx[MOST_VECTORS], sum_q2[MOST_VECTORS];
    float scales[MOST_TRIES];
    vi choices[MOST_GROUPS][MOST_VECTORS];
};

/* A group of values during a search; `factors` weight a distance. */
struct group {
    const float *values, *weights, *factors;
};

static inline vi v_load_words(const uint16_t *words)
{
    uint16_t loaded __attribute__((vector_size(2 * LANES)));
    memcpy(&loaded, words, sizeof loaded);
    return __builtin_convertvector(loaded, vi);
}

/* Keeps the lesser value, and its companion. */
static inline void v_keep_less(vf *least, vi *with, vf value, vi new_with)
{
    vm less = v_less(value, *least);
    *least = v_select(less, value, *least);
    *with = (vi)v_select(less, (vf)new_with, (vf)*with);
}

/* Keeps the least value, its choice, and the second least value. */
static inline void v_keep_two(vf *least, vf *second, vi *choice, vf value, int32_t new_choice)
{
    vm less = v_less(value, *least);
    *second = v_min(*second, v_max(value, *least));
    *least = v_min(value, *least);
    *choice = (vi)v_select(less, (vf)(new_choice + (vi){0}), (vf)*choice);
}

/* Returns a bit for each lane not above `most`; NaN is not above anything. */
static inline uint32_t v_lanes_not_above(vf values, vf most)
{
    return v_bits(v_not_less(most, values));
}

/* Returns a bit for each lane whose sums are better than the best so far, compared as in the searches. */
static inline uint32_t v_better(vf sum_qx, vf sum_q2, float best)
{
    return v_bits(v_both(v_less(best * sum_q2, sum_qx * sum_qx), v_less(v_set(0), sum_q2)));
}

/* Like nearest_int() and clamp_int(). */
static inline vi nearest_level(vf value, int most)
{
    return v_clamp(v_nearest(value), most);
}

/* Returns the place in its list of the neighbour nearest under the scale: the first of equals, and 0 if there is none.
 * `numbers` are the values of levels. */
static inline uint32_t nearest_neighbour(const struct grid_search *search, unsigned code, const struct group *group,
                                         vt numbers, float scale, int dimension)
{
    const int bits = dimension == 8 ? 2 : 3;
    const uint16_t *packed = search->packed + search->first[code];
    int count = (int)(search->first[code + 1] - search->first[code]);
    vt terms[8];
    for (int i = 0; i < dimension; i++) {
        vt difference = scale * numbers - group->values[i];
        terms[i] = group->factors[i] * difference * difference;
    }
    vf least = FLT_MAX - (vf){0};
    vi at = {0};
    for (int first = 0; first < count; first += LANES) {
        vi levels = v_load_words(packed + first);
        vf distance = v_look_up(terms[0], levels);
        for (int i = 1; i < dimension; i++)
            distance += v_look_up(terms[i], levels >> bits * i);
        distance = (vf)v_first_lanes(count - first, (vi)distance, INFINITE_BITS + (vi){0});
        v_keep_less(&least, &at, distance, lane_numbers + first);
    }
    uint32_t lanes = v_bits(v_equal(least, v_set(v_least(least))));
    if (count <= LANES)
        return (uint32_t)__builtin_ctz(lanes);
    _Alignas(64) int32_t places[LANES];
    memcpy(places, &at, sizeof places);
    int32_t place = places[__builtin_ctz(lanes)];
    for (lanes &= lanes - 1; lanes != 0; lanes &= lanes - 1)
        place = places[__builtin_ctz(lanes)] < place ? places[__builtin_ctz(lanes)] : place;
    return (uint32_t)place;
}

/* Returns the code of packed levels. Levels of eight components turn from digits of base four into digits of base three
 * in pairs, then in fours, then all at once. */
static inline unsigned code_of_packed(unsigned packed, int dimension)
{
    if (dimension == 4)
        return packed;
    unsigned pairs = packed - (packed >> 2 & 0x3333), fours = pairs - 7 * (pairs >> 4 & 0x0f0f);
    return fours - 175 * (fours >> 8);
}

/* The nearest neighbours of a group under many scales at once.
 *
 * Under scale s a point q is at the distance s * (slope * s + offset) + rest from values x with weights w, where slope
 * is the sum of w q q, offset the sum of -2 w x q, and rest is equal for all points. So the nearest point has the
 * lowest line, and a line above another at two scales is above it between them: few neighbours can be the nearest under
 * some scale of a run.
 *
 * The result must equal that of the portable kernels, which round distances at every step, in their order. With u =
 * 2^-24, a the sum of |w| q q for the largest q, and c the sum of |w| x x, such a distance is within 25 u (a s s + c)
 * of the true one, and s times a line computed here within 19 u (a s s + c). So a point whose line is above another by
 * 128 u (a s + c / s) is not the nearest in either computation. If several points remain, nearest_neighbour() decides
 * like the portable kernels. */

enum { MOST_TABLES = 8, MOST_NEIGHBOURS = 320, MOST_LINES = 1024 + MOST_NEIGHBOURS };

/* The contributions of components to slope and offset, as tables for v_look_up() by levels. One table may serve two
 * components. */
struct line_tables {
    vt slopes[MOST_TABLES], offsets[MOST_TABLES];
    float tolerance;
};

/* Successive tries with the same levels for a group. */
struct run {
    uint8_t group, first, last, n_vectors;
    uint16_t code, packed; /* the levels */
    uint16_t begin;        /* where its lines begin */
};

/* The lines of the neighbours of runs, and their choices. Lines that pad the last vector are infinitely high. Levels on
 * the grid have one line. */
struct lines {
    int n;
    uint32_t low[MOST_LINES / LANES]; /* lines that may be the lowest under some scale of the run */
    _Alignas(64) float slopes[MOST_LINES], offsets[MOST_LINES];
    _Alignas(64) int32_t choices[MOST_LINES];
};

/* Returns the number of components of a table. */
static inline int components_of_table(int dimension)
{
    return LANES == 16 && dimension == 8 ? 2 : 1;
}

/* Returns the tolerance of comparisons: infinite if numbers are too small or too large for the bounds above. */
static inline float tolerance_of(const struct group *group, float most, float least_scale, float most_scale,
                                 int dimension)
{
    float sum = 0, squares = 0;
    for (int i = 0; i < dimension; i++) {
        float weight = fabsf(group->factors[i]);
        sum += weight;
        squares += weight * group->values[i] * group->values[i];
    }
    float bound = sum * most * most * most_scale + squares / least_scale;
    bool usual = bound > 0x1p-30f && bound < 0x1p30f && least_scale > 0x1p-30f && most_scale < 0x1p30f;
    return usual ? bound * 0x1p-17f : INFINITY;
}

/* Makes the tables; `numbers` are the values of a table's first component's levels, `second` those of its second's. */
static inline void make_line_tables(const struct group *group, vt numbers, vt second, int dimension,
                                    struct line_tables *tables)
{
    const int step = components_of_table(dimension);
    for (int t = 0; t < dimension / step; t++) {
        int i = t * step;
        tables->slopes[t] = group->factors[i] * (numbers * numbers);
        tables->offsets[t] = -2 * group->factors[i] * group->values[i] * numbers;
        if (step == 2) {
            tables->slopes[t] += group->factors[i + 1] * (second * second);
            tables->offsets[t] += -2 * group->factors[i + 1] * group->values[i + 1] * second;
        }
    }
}

/* Returns the `beside` of the first lane with the least value. */
static inline float value_beside(vf values, float least, vf beside)
{
    _Alignas(64) float stored[LANES];
    v_store(stored, beside);
    return stored[__builtin_ctz(v_bits(v_equal(values, v_set(least))) | 1u << (LANES - 1))];
}

/* Adds the lines of a run's neighbours. A line is not low if it is above the lowest line at the first scale, both there
 * and at the last scale. */
static inline void add_lines(const struct grid_search *search, unsigned code, const struct line_tables *tables,
                             float first_scale, float last_scale, int dimension, struct lines *lines)
{
    const int step = components_of_table(dimension), bits = step * (dimension == 8 ? 2 : 3);
    const uint32_t begin = search->first[code];
    vf at_first[MOST_NEIGHBOURS / LANES], at_last[MOST_NEIGHBOURS / LANES], least = INFINITY + (vf){0};
    vi last_of_it = {0};
    uint32_t *low = lines->low + lines->n / LANES;
    int count = (int)(search->first[code + 1] - begin), n_vectors = (count + LANES - 1) / LANES;
    for (int v = 0; v < n_vectors; v++, lines->n += LANES) {
        vi levels = v_load_words(search->packed + begin + v * LANES);
        vi choice = levels | CHOICE_OFF_GRID;
        vf slope = v_look_up(tables->slopes[0], levels), offset = v_look_up(tables->offsets[0], levels);
        for (int i = 1; i < dimension / step; i++) {
            slope += v_look_up(tables->slopes[i], levels >> bits * i);
            offset += v_look_up(tables->offsets[i], levels >> bits * i);
        }
        offset = (vf)v_first_lanes(count - v * LANES, (vi)offset, INFINITE_BITS + (vi){0});
        memcpy(lines->choices + lines->n, &choice, sizeof choice);
        v_store(lines->slopes + lines->n, slope);
        v_store(lines->offsets + lines->n, offset);
        at_first[v] = v_line(slope, first_scale + (vf){0}, offset);
        at_last[v] = v_line(slope, last_scale + (vf){0}, offset);
        v_keep_less(&least, &last_of_it, at_first[v], (vi)at_last[v]);
    }
    float lowest = v_least(least), most_last = value_beside(least, lowest, (vf)last_of_it) + tables->tolerance;
    for (int v = 0; v < n_vectors; v++)
        low[v] = v_lanes_not_above(at_first[v], lowest + tables->tolerance + (vf){0}) |
                 v_lanes_not_above(at_last[v], most_last + (vf){0});
}

/* Adds the only line of levels on the grid. */
static inline void add_line(int32_t choice, struct lines *lines)
{
    lines->choices[lines->n] = choice;
    lines->slopes[lines->n] = lines->offsets[lines->n] = 0;
    lines->low[lines->n / LANES] = 1;
    lines->n += LANES;
}

/* Chooses the lowest of a run's lines for each try in a vector; returns a bit for each try for which that is not
 * certain. */
static inline uint32_t choose_lowest(const struct lines *lines, const struct run *run, vf scales, float tolerance,
                                     vi *ret_choice)
{
    vf least = INFINITY + (vf){0}, second = least;
    vi choice = {0};
    for (int v = 0, at = run->begin; v < run->n_vectors; v++, at += LANES)
        for (uint32_t left = lines->low[at / LANES]; left != 0; left &= left - 1) {
            int i = at + __builtin_ctz(left);
            vf line = v_line(lines->slopes[i] + (vf){0}, scales, lines->offsets[i] + (vf){0});
            v_keep_two(&least, &second, &choice, line, lines->choices[i]);
        }
    *ret_choice = choice;
    return v_lanes_not_above(second, least + tolerance);
}

/* Returns the values of the levels of IQ2 and IQ3, as a table for v_look_up() by the component at `place`. */
static inline vt level_numbers(int dimension, int place)
{
    vti levels = dimension == 8 ? table_places >> 2 * place & 3 : table_places & 7;
    return __builtin_convertvector((levels << 1) + 1, vt);
}

/* Finds the packed levels of a group under each try. Returns a bit for the first try, and for each whose levels differ
 * from those of the try before. */
static inline uint32_t find_levels(const struct tries *tries, const float *values, vi levels[MOST_VECTORS],
                                   int n_vectors, int dimension)
{
    const int bits = dimension == 8 ? 2 : 3, most = (1 << bits) - 1 - (dimension == 8);
    vi before = {0};
    uint32_t changes = 0;
    for (int v = 0; v < n_vectors; v++)
        levels[v] = (vi){0};
    for (int i = dimension - 1; i >= 0; i--)
        for (int v = 0; v < n_vectors; v++)
            levels[v] = levels[v] << bits | nearest_level(0.5f * (tries->inverse[v] * values[i] - 1), most);
    for (int v = 0; v < n_vectors; v++) {
        changes |= v_lanes_unlike(levels[v], v_one_later(before, levels[v])) << v * LANES;
        before = levels[v];
    }
    return (changes | 1) & (UINT32_MAX >> (32 - tries->n));
}

/* Adds the points of a group to the sums of each try. */
static inline void sum_group(const struct group *group, const vi *choices, struct tries *tries, int n_vectors,
                             int dimension)
{
    const int bits = dimension == 8 ? 2 : 3;
    vt numbers = level_numbers(dimension, 0);
    for (int i = 0; i < dimension; i++) {
        vt qx = group->weights[i] * group->values[i] * numbers, q2 = group->weights[i] * numbers * numbers;
        for (int v = 0; v < n_vectors; v++) {
            tries->sum_qx[v] += v_look_up(qx, choices[v] >> bits * i);
            tries->sum_q2[v] += v_look_up(q2, choices[v] >> bits * i);
        }
    }
}

/* Finds the choices of a run's tries. */
static inline void choose_in_run(const struct grid_search *search, const struct lines *lines, const struct run *run,
                                 const struct group *group, float tolerance, struct tries *tries, int dimension)
{
    vi *choices = tries->choices[run->group];
    uint32_t unsure = 0;
    for (int v = run->first / LANES; v * LANES <= run->last; v++) {
        vi choice;
        unsure |= choose_lowest(lines, run, v_load(tries->scales + v * LANES), tolerance, &choice) << v * LANES;
        choices[v] = v_first_lanes(run->first - v * LANES, choices[v], choice);
    }
    unsure &= (UINT32_MAX << run->first) & (UINT32_MAX >> (31 - run->last));
    for (; unsure != 0 && search->index[run->code] < 0; unsure &= unsure - 1) {
        int t = __builtin_ctz(unsure);
        uint32_t place =
            nearest_neighbour(search, run->code, group, level_numbers(dimension, 0), tries->scales[t], dimension);
        ((int32_t *)choices)[t] = lines->choices[run->begin + place];
    }
}

/* Lists the runs of group k, and prefetches their neighbours. */
static inline int list_runs(const struct grid_search *search, const struct tries *tries, const float *values, int k,
                            struct run *runs, int n_vectors, int dimension)
{
    vi levels[MOST_VECTORS];
    uint32_t changes = find_levels(tries, values, levels, n_vectors, dimension);
    int n = 0;
    while (changes != 0) {
        int first = __builtin_ctz(changes);
        changes &= changes - 1;
        int last = (changes != 0 ? __builtin_ctz(changes) : tries->n) - 1;
        unsigned packed = (unsigned)((const int32_t *)levels)[first], code = code_of_packed(packed, dimension);
        __builtin_prefetch(search->packed + search->first[code]);
        runs[n++] = (struct run){
            .group = (uint8_t)k,
            .first = (uint8_t)first,
            .last = (uint8_t)last,
            .code = (uint16_t)code,
            .packed = (uint16_t)packed,
        };
    }
    return n;
}

/* Finds the choices of n runs. Each step of a run takes long, so many runs proceed step by step: one computes while
 * another waits. */
static inline void choose_in_runs(const struct grid_search *search, struct run *runs, int n, const struct group *groups,
                                  const struct line_tables *tables, struct tries *tries, int dimension)
{
    struct lines lines;
    for (int done = 0, i; done < n; done = i) {
        lines.n = 0;
        for (i = done; i < n && lines.n <= MOST_LINES - MOST_NEIGHBOURS; i++) {
            struct run *run = &runs[i];
            run->begin = (uint16_t)lines.n;
            if (search->index[run->code] >= 0)
                add_line(run->packed, &lines);
            else
                add_lines(search, run->code, &tables[run->group], tries->scales[run->first], tries->scales[run->last],
                          dimension, &lines);
            run->n_vectors = (uint8_t)((lines.n - run->begin) / LANES);
        }
        for (int j = done; j < i; j++) {
            int k = runs[j].group;
            choose_in_run(search, &lines, &runs[j], &groups[k], tables[k].tolerance, tries, dimension);
        }
    }
}

/* Finds the points of all groups under each try, and the sums. */
static inline void try_groups(const struct grid_search *search, const struct group *groups, int n_groups,
                              struct tries *tries, int n_vectors, int dimension)
{
    struct line_tables tables[MOST_GROUPS];
    struct run runs[MOST_GROUPS * MOST_TRIES];
    int n_runs = 0;
    for (int k = 0; k < n_groups; k++) {
        n_runs += list_runs(search, tries, groups[k].values, k, runs + n_runs, n_vectors, dimension);
        tables[k].tolerance = tolerance_of(&groups[k], (float)(2 * search->grid->n_levels - 1),
                                           tries->scales[tries->n - 1], tries->scales[0], dimension);
        make_line_tables(&groups[k], level_numbers(dimension, 0), level_numbers(dimension, 1), dimension, &tables[k]);
    }
    choose_in_runs(search, runs, n_runs, groups, tables, tries, dimension);
    for (int k = 0; k < n_groups; k++)
        sum_group(&groups[k], tries->choices[k], tries, n_vectors, dimension);
}

/* Returns the best try, compared in order; -1 if none has a gain. */
static inline int best_in_order(int n, const float *sums_qx, const float *sums_q2)
{
    float best = 0;
    int kept = -1;
    for (int t = 0; t < n; t++)
        if (sums_q2[t] > 0 && sums_qx[t] * sums_qx[t] > best * sums_q2[t]) {
            best = sums_qx[t] / sums_q2[t] * sums_qx[t];
            kept = t;
        }
    return kept;
}

/* Like best_in_order(), without comparing one by one if rounding cannot matter: a try whose gain is higher by more than
 * rounding errors is the best in any order. Of tries with equal sums it is the first or, if rounding makes their gain
 * greater than itself, the last. */
static inline int best_try(const struct tries *tries, int n_vectors, float *ret_scale)
{
    float sums_qx[MOST_TRIES], sums_q2[MOST_TRIES];
    vf gains[MOST_VECTORS], low = {0};
    uint32_t tiny = 0, moderate = 0, others = 0, best, alike = 0, all = UINT32_MAX >> (32 - tries->n);
    for (int v = 0; v < n_vectors; v++) {
        vf qx = tries->sum_qx[v], q2 = tries->sum_q2[v];
        v_store(sums_qx + v * LANES, qx);
        v_store(sums_q2 + v * LANES, q2);
        tiny |= v_lanes_not_above(q2, 0x1p-60f + (vf){0}) << v * LANES;
        moderate |= v_lanes_not_above(q2, 0x1p60f + (vf){0}) << v * LANES;
        gains[v] = (vf)v_first_lanes(tries->n - v * LANES, (vi)(qx * qx / q2), (vi){0});
        low = v_min(-gains[v], low);
    }
    float most = -v_least(low);
    for (int v = 0; v < n_vectors; v++)
        others |= v_lanes_not_above(gains[v], most * NEARLY + (vf){0}) << v * LANES;
    best = all & ~others;
    int kept = best != 0 ? __builtin_ctz(best) : 0;
    float qx = sums_qx[kept], q2 = sums_q2[kept];
    for (int v = 0; v < n_vectors; v++)
        alike |= v_bits(v_both(v_equal(tries->sum_qx[v], v_set(qx)), v_equal(tries->sum_q2[v], v_set(q2))))
                 << v * LANES;
    bool sure = (tiny & all) == 0 && (moderate & all) == all && most > 0x1p-60f && most < 0x1p60f;
    if (!sure || best == 0 || (best & ~alike) != 0)
        kept = best_in_order(tries->n, sums_qx, sums_q2);
    else if (qx * qx > qx / q2 * qx * q2)
        kept = 31 - __builtin_clz(best);
    if (kept >= 0)
        *ret_scale = sums_qx[kept] / sums_q2[kept];
    return kept;
}

/* Snaps groups again under the final scale, those off the grid or all; `packed` are their levels. Returns the scale
 * that fits all. */
static inline float redo(const struct iq_format *format, const struct grid_search *search, const struct group *groups,
                         int n_groups, uint32_t off_grid, float scale, unsigned *packed, int dimension)
{
    const int bits = dimension == 8 ? 2 : 3, most = (1 << bits) - 1 - (dimension == 8), n = n_groups * dimension;
    vi vectors[IQ_MOST_SUB_ELEMENTS / LANES];
    int32_t *levels = (int32_t *)vectors;
    _Alignas(64) float qx[IQ_MOST_SUB_ELEMENTS], q2[IQ_MOST_SUB_ELEMENTS];
    float sum_qx = 0, sum_q2 = 0, inverse = 1 / scale;
    for (int v = 0; v * LANES < n; v++)
        vectors[v] = nearest_level(0.5f * (inverse * v_load(groups->values + v * LANES) - 1), most);
    for (int k = 0; k < n_groups; k++) {
        unsigned tried = 0;
        if (!format->redoes_all && (off_grid >> k & 1) == 0)
            continue;
        for (int i = dimension - 1; i >= 0; i--)
            tried = tried << bits | (unsigned)levels[k * dimension + i];
        unsigned code = code_of_packed(tried, dimension);
        packed[k] =
            search->index[code] >= 0
                ? tried
                : search
                      ->packed[search->first[code] + nearest_neighbour(search, code, &groups[k],
                                                                       level_numbers(dimension, 0), scale, dimension)];
    }
    for (int i = 0; i < n; i++)
        levels[i] = (int32_t)(packed[i / dimension] >> bits * (i % dimension) & ((1U << bits) - 1));
    for (int i = 0; i < n; i += LANES) {
        vf q = __builtin_convertvector((vectors[i / LANES] << 1) + 1, vf), weight = v_load(groups->weights + i);
        v_store(qx + i, weight * v_load(groups->values + i) * q);
        v_store(q2 + i, weight * q * q);
    }
    for (int i = 0; i < n; i++) {
        sum_qx += qx[i];
        sum_q2 += q2[i];
    }
    return sum_q2 > 0 ? sum_qx / sum_q2 : scale;
}

static inline float search_groups(const struct iq_format *format, const struct grid_search *search,
                                  const float *magnitudes, const float *weights, float begin, float scale,
                                  uint16_t *points, int n_vectors, int dimension)
{
    int n = format->sub_elements, n_groups = n / dimension;
    _Alignas(64) float roots[IQ_MOST_SUB_ELEMENTS], inverses[MOST_TRIES];
    struct group groups[MOST_GROUPS] = {0};
    struct tries tries;
    tries.n = 2 * format->n_steps + 1;
    for (int i = 0; i < n; i += LANES)
        v_store(roots + i, v_sqrt(v_load(weights + i)));
    for (int t = 0; t < n_vectors * LANES; t++)
        inverses[t] = iq_inverse(format, search->grid, (t < tries.n ? t : 0) - format->n_steps, begin);
    for (int v = 0; v < n_vectors; v++) {
        tries.inverse[v] = v_load(inverses + v * LANES);
        tries.sum_qx[v] = tries.sum_q2[v] = (vf){0};
        v_store(tries.scales + v * LANES, 1 / tries.inverse[v]);
    }
    for (int k = 0; k < n_groups; k++)
        groups[k] = (struct group){magnitudes + k * dimension, weights + k * dimension, roots + k * dimension};
    try_groups(search, groups, n_groups, &tries, n_vectors, dimension);
    int kept = best_try(&tries, n_vectors, &scale);
    uint32_t off_grid = 0;
    unsigned packed[MOST_GROUPS];
    for (int k = 0; k < n_groups; k++) {
        int32_t choice = kept >= 0 ? ((const int32_t *)tries.choices[k])[kept] : 0;
        packed[k] = (unsigned)choice & (CHOICE_OFF_GRID - 1);
        off_grid |= (uint32_t)(kept >= 0 ? (choice & CHOICE_OFF_GRID) != 0 : format->begins_off) << k;
    }
    if ((format->positive || off_grid != 0) && scale > 0)
        scale = redo(format, search, groups, n_groups, off_grid, scale, packed, dimension);
    for (int k = 0; k < n_groups; k++)
        points[k] = (uint16_t)search->index[code_of_packed(packed[k], dimension)];
    return scale;
}

/* Searches with constant numbers of vectors and components, so that the loops unroll. */
static float search_any(const struct iq_format *format, const struct grid_search *search, const float *magnitudes,
                        const float *weights, float begin, float scale, uint16_t *points)
{
    enum { FEW = (16 + LANES - 1) / LANES, SOME = (24 + LANES - 1) / LANES };
    int n_vectors = (2 * format->n_steps + LANES) / LANES;
    if (search->grid->dimension == 4 && n_vectors > SOME)
        return search_groups(format, search, magnitudes, weights, begin, scale, points, MOST_VECTORS, 4);
    if (search->grid->dimension == 4)
        return search_groups(format, search, magnitudes, weights, begin, scale, points, SOME, 4);
    if (n_vectors > FEW)
        return search_groups(format, search, magnitudes, weights, begin, scale, points, SOME, 8);
    return search_groups(format, search, magnitudes, weights, begin, scale, points, FEW, 8);
}

void IQ_NAME(iq_encode)(const struct iq_format *format, const float *values, const float *importance, uint8_t *blocks,
                        size_t n_blocks)
{
    encode_blocks(search_any, format, values, importance, blocks, n_blocks);
}
