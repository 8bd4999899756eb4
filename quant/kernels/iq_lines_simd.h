/* The nearest neighbours of a group under many scales at once: included by iq_simd.h.
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
