/* k_search_refined() for the levels of Q3_K, -4 to 3, and many sub-blocks: included by k_simd.h.
 *
 * Each change of a level affects all later tests, and there are sixteen values to test, in up to five passes. The
 * search is fast because changes are rare:
 * - If the largest value is positive, the sums of its levels are negative, and the search changes nothing.
 * - Most other sub-blocks do not change either. Without a change the sums stay, and the values can be tested in any
 * order.
 * - The few remaining sub-blocks are collected, and searched side by side. As the sums stay until the next change, one
 * test of all values finds it: in a round every sub-block goes to its own next change, wherever that is.
 *
 * The tests of all values are estimates, without the reference's division, that may take a level that stays for one
 * that changes, but not the other way round. Only the value that is next is then computed like the reference. */

/* The sums of the first levels, where sums of squares are 0 if all values are negligible, and the first value that may
 * change its level: 16 for none. */
struct v_beginning {
    float lx[STRETCH_SUB_BLOCKS], l2[STRETCH_SUB_BLOCKS], change[STRETCH_SUB_BLOCKS];
};

/* Value i of WIDTH sub-blocks, its level, and what it has of sum_lx. */
struct v_term {
    wide x, level, lx;
};

/* Returns how far a value is from its level, in units of which the other values' sum_lx is one step. The value's own
 * part cancels, so these are the sums with it. What is above 3, the highest level, counts as 3. */
static inline vf v_away(vf x, vf level, vf sum_lx, vf sum_l2)
{
    return v_abs(v_line(level, -sum_lx, v_min(x * sum_l2, v_set(3) * sum_lx)));
}

/* Returns somewhat less than half of sum_lx; v_away() less than that, for the other values' sum, leaves the level. All
 * errors of rounding together are below 2^-18 of the sum, or a few of the least subnormal numbers; a subnormal constant
 * would make every use slow. */
static inline vf v_half(vf sum_lx)
{
    return v_line(v_set(.499f - 0x1p-16f), sum_lx, v_set(-0x1p-126f));
}

/* Returns the lanes whose search may have a change to make; for the rest these are the final sums. */
static inline uint32_t v_begin(struct v_term terms[16], struct v_beginning *begun, float *ret_inverses, int first)
{
    wide largest, inverse, sum_lx, sum_l2, half, change;
    uint32_t lanes = 0;
    v_signed_largest(&terms->x, 16, sizeof *terms / sizeof terms->x, largest);
    EACH_VECTOR(v)
    {
        inverse[v] = v_set(-4) / largest[v];
        sum_lx[v] = sum_l2[v] = v_set(0);
        change[v] = v_set(16);
    }
    for (int i = 0; i < 16; i++)
        EACH_VECTOR(v)
        {
            vf x = terms[i].x[v], weight = x * x, level = v_round(v_min(inverse[v] * x, v_set(3)));
            terms[i].level[v] = level;
            terms[i].lx[v] = weight * x * level;
            sum_lx[v] += terms[i].lx[v];
            sum_l2[v] += weight * level * level;
        }
    EACH_VECTOR(v) half[v] = v_half(sum_lx[v]);
    for (int i = 15; i >= 0; i--)
        EACH_VECTOR(v)
        {
            vf away = v_away(terms[i].x[v], terms[i].level[v], sum_lx[v], sum_l2[v]);
            vm stays = v_less(away, v_line(v_set(-.499f), terms[i].lx[v], half[v]));
            change[v] = v_select(stays, change[v], v_set((float)i));
        }
    EACH_VECTOR(v)
    {
        vm significant = v_not_less(v_abs(largest[v]), v_set(K_NEGLIGIBLE));
        vm negative = v_not_less(v_set(-K_NEGLIGIBLE), largest[v]);
        lanes |= v_bits(v_both(negative, v_less(change[v], v_set(16)))) << (v * LANES);
        v_store(begun->change + first + v * LANES, change[v]);
        v_store(ret_inverses + first + v * LANES, v_select(significant, inverse[v], v_set(NAN)));
        v_store(begun->lx + first + v * LANES, sum_lx[v]);
        v_store(begun->l2 + first + v * LANES, v_select(significant, sum_l2[v], v_set(0)));
    }
    return lanes;
}

/* Sub-blocks to search at a time. The stack is small: musl gives a thread 128 KB. */
enum { MOST_REFINEMENTS = 160 };
_Static_assert(MOST_REFINEMENTS % LANES == 0, "whole vectors");

/* A sub-block on its way through the search. */
struct v_refinement {
    _Alignas(64) float values[16], levels[16];
    int sub_block;
    int step, changed; /* of five times sixteen: the next test, and the last change; at first -1 */
    float sum_lx, sum_l2;
};

/* A value of each sub-block, its level, and the sums with it. */
struct v_tests {
    float x[MOST_REFINEMENTS], level[MOST_REFINEMENTS], lx[MOST_REFINEMENTS], l2[MOST_REFINEMENTS];
};

static inline void v_begin_refinement(struct v_refinement *r, int sub_block, const float *values, float inverse,
                                      const struct v_beginning *begun)
{
    r->sub_block = sub_block;
    r->step = (int)begun->change[sub_block];
    r->changed = -1;
    r->sum_lx = begun->lx[sub_block];
    r->sum_l2 = begun->l2[sub_block];
    for (int i = 0; i < 16; i += LANES) {
        vf x = v_load(values + sub_block * 16 + i);
        v_store(r->values + i, x);
        v_store(r->levels + i, v_level(v_set(inverse) * x, v_set(-4), v_set(3)));
    }
}

/* Goes on to the next value that may change, in the rest of this pass or in the next; false if there is none until all
 * sixteen were tested since the last change. */
static inline bool v_next(struct v_refinement *r)
{
    vf sum_lx = v_set(r->sum_lx), sum_l2 = v_set(r->sum_l2), half = v_half(sum_lx);
    uint32_t changes = 0, ahead = ~1u << (r->step & 15) & (r->step < 4 * 16 ? ~0u : 0xffff);
    for (int i = 0; i < 16; i += LANES) {
        vf x = v_load(r->values + i), level = v_load(r->levels + i), away = v_away(x, level, sum_lx, sum_l2);
        changes |= v_bits(v_not_less(away, v_line(v_set(-.499f) * (x * x * x), level, half))) << i;
    }
    int next = __builtin_ctzll(((changes | changes << 16) & ahead) | (uint64_t)1 << 32);
    r->step = (r->step & ~15) + next;
    return r->step <= r->changed + 16;
}

/* Tests a value of n sub-blocks like the reference. A changed level is new, as are the sums. */
static inline void v_test(struct v_tests *tests, int n)
{
    for (int i = 0; i < n; i += LANES) {
        vf x = v_load(tests->x + i), kept = v_load(tests->level + i), weight = x * x;
        vf sum_lx = v_load(tests->lx + i), sum_l2 = v_load(tests->l2 + i);
        vf lx = sum_lx - weight * x * kept, l2 = sum_l2 - weight * kept * kept;
        vf level = v_min(v_max(__builtin_convertvector(v_nearest(x * l2 / lx), vf), v_set(-4)), v_set(3));
        vm wanted = v_both(v_less(v_set(0), lx), v_unequal(level, kept));
        lx += weight * x * level;
        l2 += weight * level * level;
        vm better = v_both(v_less(v_set(0), l2), v_less(sum_lx * sum_lx * l2, lx * lx * sum_l2));
        vm changes = v_both(wanted, better);
        v_store(tests->level + i, v_select(changes, level, kept));
        v_store(tests->lx + i, v_select(changes, lx, sum_lx));
        v_store(tests->l2 + i, v_select(changes, l2, sum_l2));
    }
}

/* Makes the sub-block's next test number i. */
static inline void v_prepare(const struct v_refinement *r, struct v_tests *tests, int i)
{
    tests->x[i] = r->values[r->step & 15];
    tests->level[i] = r->levels[r->step & 15];
    tests->lx[i] = r->sum_lx;
    tests->l2[i] = r->sum_l2;
}

/* Makes the change that test i found, if it found one. */
static inline void v_change(struct v_refinement *r, const struct v_tests *tests, int i)
{
    float *level = &r->levels[r->step & 15];
    r->changed = *level != tests->level[i] ? r->step : r->changed;
    *level = tests->level[i];
    r->sum_lx = tests->lx[i];
    r->sum_l2 = tests->l2[i];
}

/* Takes each to its next change, or past a value that was taken for one, until none has any left. */
static void v_refine_each(struct v_refinement *refinements, int n)
{
    struct v_tests tests = {0};
    uint16_t going[MOST_REFINEMENTS];
    for (int i = 0; i < n; i++) {
        going[i] = (uint16_t)i;
        v_prepare(&refinements[i], &tests, i);
    }
    for (int left; n > 0; n = left) {
        v_test(&tests, n);
        for (int i = 0; i < n; i++)
            v_change(&refinements[going[i]], &tests, i);
        left = 0;
        for (int i = 0; i < n; i++) {
            bool goes_on = v_next(&refinements[going[i]]);
            going[left] = going[i];
            v_prepare(&refinements[going[i]], &tests, left);
            left += goes_on;
        }
    }
}

static void v_finish(struct v_refinement *refinements, int n, struct v_beginning *begun, struct found *found)
{
    v_refine_each(refinements, n);
    for (const struct v_refinement *r = refinements; r < refinements + n; r++) {
        begun->lx[r->sub_block] = r->sum_lx;
        begun->l2[r->sub_block] = r->sum_l2;
        found->inverses[r->sub_block] = INFINITY;
        for (int i = 0; i < 16; i += LANES)
            v_store_bytes(v_load(r->levels + i), -4, found->refined[r->sub_block] + i);
    }
}

/* Searches n sub-blocks, which are whole vectors. */
static void v_search_refined(const float *values, int n, struct found *found)
{
    struct v_term terms[16];
    struct v_beginning begun;
    struct v_refinement refinements[MOST_REFINEMENTS];
    int n_unfinished = 0;
    for (int first = 0; first < n; first += WIDTH) {
        load_lanes(values + first * 16, 16, &terms->x, sizeof *terms / sizeof terms->x);
        uint32_t lanes = v_begin(terms, &begun, found->inverses, first);
        for (; lanes != 0; lanes &= lanes - 1) {
            int i = first + __builtin_ctz(lanes);
            v_begin_refinement(&refinements[n_unfinished++], i, values, found->inverses[i], &begun);
        }
        if (n_unfinished > MOST_REFINEMENTS - WIDTH || first + WIDTH == n) {
            v_finish(refinements, n_unfinished, &begun, found);
            n_unfinished = 0;
        }
    }
    for (int i = 0; i < n; i += LANES) {
        vf l2 = v_load(begun.l2 + i), scale = v_load(begun.lx + i) / l2;
        v_store(found->scales + i, v_select(v_less(v_set(0), l2), scale, v_set(0)));
        v_store(found->offsets + i, v_set(0));
    }
}
