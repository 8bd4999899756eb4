/* k_search_refined() for the levels of Q3_K, -4 to 3, and many sub-blocks: included by k_simd.h.
 *
 * Each change of a level affects all later tests, so in lanes in lockstep every sub-block would wait for the one with
 * the most changes. The search is fast because changes are rare:
 * - If the largest value is positive, the sums of its levels are negative, and the search changes nothing.
 * - Most other sub-blocks do not change either. Without a change the sums stay, and the values can be tested in any
 * order, with sub-blocks side by side as everywhere in k_simd.h.
 * - The few remaining ones have their sixteen values side by side instead. As the sums stay until the next change, one
 * test of all values finds it. Each sub-block makes one change a round, so that others compute while one waits. */

_Static_assert(WIDTH <= 32, "a bit for every lane");

/* The sums of the first levels; sums of squares are 0 if all values are negligible. */
struct v_beginning {
    float lx[STRETCH_SUB_BLOCKS], l2[STRETCH_SUB_BLOCKS];
};

/* Value i of WIDTH sub-blocks, its level, and their contribution to the sums. */
struct v_term {
    wide x, level, lx, l2;
};

/* Returns the lanes whose search has a change to make, and sometimes others; for the rest these are the final sums. A
 * level stays if the value, in steps of the scale that the other values suggest, is within half a step of it. Being
 * within 0.499 can be tested without the reference's division and rounding. A value above level 3 stays at 3, however
 * large, and is taken for one at 3; no value is below -4, the level of the largest. */
static inline uint32_t v_begin(struct v_term terms[16], struct v_beginning *begun, float *ret_inverses, int first)
{
    wide largest, inverse, cap, sum_lx, sum_l2;
    vm changes[VECTORS];
    uint32_t lanes = 0;
    v_signed_largest(&terms->x, 16, sizeof *terms / sizeof terms->x, largest);
    EACH_VECTOR(v)
    {
        inverse[v] = v_set(-4) / largest[v];
        cap[v] = v_set(-.75f) * largest[v];
        sum_lx[v] = sum_l2[v] = v_set(0);
        changes[v] = v_less(largest[v], largest[v]);
    }
    for (int i = 0; i < 16; i++)
        EACH_VECTOR(v)
        {
            vf x = terms[i].x[v], weight = x * x, level = v_round(v_min(inverse[v] * x, v_set(3)));
            terms[i].level[v] = level;
            terms[i].lx[v] = weight * x * level;
            terms[i].l2[v] = weight * level * level;
            sum_lx[v] += terms[i].lx[v];
            sum_l2[v] += terms[i].l2[v];
        }
    for (int i = 0; i < 16; i++)
        EACH_VECTOR(v)
        {
            vf others_lx = sum_lx[v] - terms[i].lx[v], others_l2 = sum_l2[v] - terms[i].l2[v];
            vf away = v_min(terms[i].x[v], cap[v]) * others_l2 - terms[i].level[v] * others_lx;
            changes[v] = v_either(changes[v], v_not_less(v_abs(away), v_set(.499f) * others_lx));
        }
    EACH_VECTOR(v)
    {
        vm significant = v_not_less(v_abs(largest[v]), v_set(K_NEGLIGIBLE));
        changes[v] = v_both(changes[v], v_both(significant, v_less(largest[v], v_set(0))));
        lanes |= v_bits(changes[v]) << (v * LANES);
        v_store(ret_inverses + first + v * LANES, v_select(significant, inverse[v], v_set(NAN)));
        v_store(begun->lx + first + v * LANES, sum_lx[v]);
        v_store(begun->l2 + first + v * LANES, v_select(significant, sum_l2[v], v_set(0)));
    }
    return lanes;
}

/* A sub-block on its way through the search. */
struct v_refinement {
    const float *values;
    int sub_block;
    int step; /* of five times sixteen: the place of the last change; at first -1 */
    float sum_lx, sum_l2, levels[17];
};

static inline void v_begin_refinement(struct v_refinement *r, int sub_block, const float *values, float inverse,
                                      const struct v_beginning *begun)
{
    r->values = values + sub_block * 16;
    r->sub_block = sub_block;
    r->step = -1;
    r->sum_lx = begun->lx[sub_block];
    r->sum_l2 = begun->l2[sub_block];
    for (int i = 0; i < 16; i += LANES)
        v_store(r->levels + i, v_level(v_set(inverse) * v_load(r->values + i), v_set(-4), v_set(3)));
}

/* Returns a bit for each value that would change its level, and for every value its new level and sums. */
static inline uint32_t v_changes(const struct v_refinement *r, float *ret_levels, float *ret_lx, float *ret_l2)
{
    vf sum_lx = v_set(r->sum_lx), sum_l2 = v_set(r->sum_l2);
    uint32_t changes = 0;
    for (int i = 0; i < 16; i += LANES) {
        vf x = v_load(r->values + i), kept = v_load(r->levels + i), weight = x * x;
        vf lx = sum_lx - weight * x * kept, l2 = sum_l2 - weight * kept * kept;
        vf level = v_min(v_max(__builtin_convertvector(v_nearest(x * l2 / lx), vf), v_set(-4)), v_set(3));
        vm wanted = v_both(v_less(v_set(0), lx), v_unequal(level, kept));
        lx += weight * x * level;
        l2 += weight * level * level;
        vm better = v_both(v_less(v_set(0), l2), v_less(sum_lx * sum_lx * l2, lx * lx * sum_l2));
        v_store(ret_levels + i, level);
        v_store(ret_lx + i, lx);
        v_store(ret_l2 + i, l2);
        changes |= v_bits(v_both(wanted, better)) << i;
    }
    return changes;
}

/* Makes the next change, if there is one in the rest of this pass or in the next. Has no branch, which would be as
 * unpredictable as the change: without a change it changes value 16, and sets the sums to themselves. */
static inline bool v_refine(struct v_refinement *r)
{
    _Alignas(64) float levels[17], lx[17], l2[17];
    uint32_t changes = v_changes(r, levels, lx, l2), ahead = ~1u << (r->step & 15) & (r->step < 4 * 16 ? ~0u : 0xffff);
    levels[16] = 0;
    lx[16] = r->sum_lx;
    l2[16] = r->sum_l2;
    int next = __builtin_ctzll(((changes | changes << 16) & ahead) | (uint64_t)1 << 32);
    int at = (next & 15) | (next >> 1 & 16);
    r->step = (r->step & ~15) + next;
    v_copy_element(r->levels, levels, at);
    r->sum_lx = lx[at];
    r->sum_l2 = l2[at];
    return at != 16;
}

static void v_refine_all(struct v_refinement *refinements, int n)
{
    uint16_t going[STRETCH_SUB_BLOCKS];
    bool changed[STRETCH_SUB_BLOCKS];
    for (int i = 0; i < n; i++)
        going[i] = (uint16_t)i;
    for (int left; n > 0; n = left) {
        for (int i = 0; i < n; i++)
            changed[i] = v_refine(&refinements[going[i]]);
        left = 0;
        for (int i = 0; i < n; i++) {
            going[left] = going[i];
            left += changed[i];
        }
    }
}

/* Searches n sub-blocks, which are whole vectors. */
static void v_search_refined(const float *values, int n, struct found *found)
{
    struct v_term terms[16];
    struct v_beginning begun;
    struct v_refinement refinements[STRETCH_SUB_BLOCKS];
    uint16_t unfinished[STRETCH_SUB_BLOCKS + 1];
    int n_unfinished = 0;
    for (int first = 0; first < n; first += WIDTH) {
        load_lanes(values + first * 16, 16, &terms->x, sizeof *terms / sizeof terms->x);
        uint32_t lanes = v_begin(terms, &begun, found->inverses, first);
        for (int lane = 0; lane < WIDTH; lane++) {
            unfinished[n_unfinished] = (uint16_t)(first + lane);
            n_unfinished += lanes >> lane & 1;
        }
    }
    for (int i = 0; i < n_unfinished; i++)
        v_begin_refinement(&refinements[i], unfinished[i], values, found->inverses[unfinished[i]], &begun);
    v_refine_all(refinements, n_unfinished);
    for (int i = 0; i < n_unfinished; i++) {
        const struct v_refinement *r = &refinements[i];
        begun.lx[r->sub_block] = r->sum_lx;
        begun.l2[r->sub_block] = r->sum_l2;
        found->inverses[r->sub_block] = INFINITY;
        for (int k = 0; k < 16; k += LANES)
            v_store_bytes(v_load(r->levels + k) - v_set(-4), found->refined[r->sub_block] + k);
    }
    for (int i = 0; i < n; i += LANES) {
        vf l2 = v_load(begun.l2 + i), scale = v_load(begun.lx + i) / l2;
        v_store(found->scales + i, v_select(v_less(v_set(0), l2), scale, v_set(0)));
        v_store(found->offsets + i, v_set(0));
    }
}
