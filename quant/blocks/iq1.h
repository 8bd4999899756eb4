/* Shared by IQ1_S and IQ1_M: groups of eight values, each -1, 0 or 1 times a scale, and all shifted up or down by an
 * eighth of the scale.
 *
 * The searches sort the values of a sub-block: in that order the levels are a run of 0, then of 1, then of 2, and the
 * search tries all ways to divide them. Source: quantize_row_iq1_s_impl and iq1_quant_block_m in ggml-quants.c of
 * llama.cpp. */
#pragma once

#include "base/checked.h"
#include "quant/blocks/encoders.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/grid.h"

#include <math.h>
#include <stdbool.h>

enum { IQ1_S_SUB_ELEMENTS = 32, IQ1_M_SUB_ELEMENTS = 16 };

#define IQ1_SHIFT 0.125f

/* The values of the levels, shifted up and shifted down. */
extern const float iq1_up[3], iq1_down[3];

static inline void iq1_decode_point(const uint8_t *levels, float scale, float shift, float *values)
{
    for (int i = 0; i < IQ_GROUP; i++)
        values[i] = scale * ((float)levels[i] - 1 + shift);
}

/* Returns the places of n values in ascending order, equal values in their own: the result of glibc's qsort() with the
 * reference's comparison, on which the format's bits depend. */
void iq1_sort(const float *values, int n, uint8_t *order);

/* How the values of a sub-block are divided and shifted. */
struct iq1_division {
    int first_one, first_two; /* the places of levels 1 and 2 in ascending order */
    unsigned down;            /* IQ1_S: 1 or 0; IQ1_M: bit 1 for the first group of eight, bit 0 for the second */
    float scale;              /* negative: reverse the levels */
};

/* The slow loops; iq1_simd.h has faster ones with the same results. */
struct iq1_loops {
    /* Like iq1_sort(), for 16 or 32 values. */
    void (*sort)(const float *values, int n, uint8_t *order);

    /* Find the best way to divide the values; return false if there is none. */
    bool (*divide_s)(const float *values, const float *weights, const uint8_t *order,
                     struct iq1_division *ret_division);
    bool (*divide_m)(const float *values, const float *weights, const uint8_t *order,
                     struct iq1_division *ret_division);

    /* Returns the index of the point nearest to a group, among the neighbours of levels off the grid. `numbers` are the
     * values of the levels. */
    unsigned (*nearest)(const struct grid_search *search, unsigned code, const float *values, const float *weights,
                        const float *numbers, float scale);
};
extern const struct iq1_loops iq1_portable_loops, iq1_neon_loops, iq1_avx2_loops, iq1_avx512_loops;

/* Returns the code of a group's levels, and prefetches their neighbours. */
static inline unsigned iq1_code(const struct grid_search *search, const uint8_t *levels)
{
    unsigned code = grid_code(search->grid, levels);
    __builtin_prefetch(search->packed + search->first[code]);
    return code;
}

/* Finds the point for the levels of a group, which become the point's; returns false if they were off the grid. */
bool iq1_snap(const struct iq1_loops *loops, const struct grid_search *search, unsigned code, const float *values,
              const float *weights, const float *numbers, float scale, uint8_t *levels, uint16_t *ret_point);

static inline float largest_magnitude(const float *values, int n)
{
    float largest = 0;
    for (int i = 0; i < n; i++) {
        float magnitude = fabsf(values[i]);
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

/* Returns the level values of a group (0 or 1) of a sub-block of IQ1_M; `down` has a bit for each group. */
static inline const float *iq1_numbers(unsigned down, int group)
{
    return down >> (1 - group) & 1 ? iq1_down : iq1_up;
}

/* The result of the search for a sub-block; all zeros if the sub-block is negligible. */
struct iq1_found {
    uint16_t points[4];
    unsigned down; /* as in iq1_division */
    float scale;
};

/* The differences between the two formats. */
struct iq1_kind {
    int n;
    float negligible; /* sub-blocks of smaller magnitudes are not searched */
    unsigned most_down;
};

static inline const float *iq1_numbers_of(const struct iq1_kind *kind, unsigned down, int group)
{
    return iq1_numbers(down, kind->most_down == 1 ? 1 : group);
}

/* A sub-block on its way through the search: its values in ascending order, then their levels. */
struct iq1_pending {
    bool searched;
    uint8_t order[IQ1_S_SUB_ELEMENTS], levels[IQ1_S_SUB_ELEMENTS];
    unsigned down, codes[4];
    float scale;
};

static inline bool iq1_begin(const struct iq1_loops *loops, const struct iq1_kind *kind, const float *values,
                             struct iq1_pending *pending)
{
    if (largest_magnitude(values, kind->n) < kind->negligible)
        return false;
    loops->sort(values, kind->n, pending->order);
    return true;
}

/* Divides the values, and begins to load the neighbours of their groups. */
static inline bool iq1_divide(const struct iq1_loops *loops, const struct grid_search *tables,
                              const struct iq1_kind *kind, const float *values, const float *weights,
                              struct iq1_pending *pending)
{
    struct iq1_division division;
    bool (*divide)(const float *, const float *, const uint8_t *, struct iq1_division *) =
        kind->n == IQ1_S_SUB_ELEMENTS ? loops->divide_s : loops->divide_m;
    if (!divide(values, weights, pending->order, &division))
        return false;
    bool reversed = division.scale < 0;
    pending->down = reversed ? kind->most_down - division.down : division.down;
    pending->scale = fabsf(division.scale);
    for (int j = 0; j < kind->n; j++) {
        int level = (j >= division.first_one) + (j >= division.first_two);
        pending->levels[pending->order[j]] = (uint8_t)(reversed ? 2 - level : level);
    }
    for (int k = 0; k < kind->n / IQ_GROUP; k++)
        pending->codes[k] = iq1_code(tables, pending->levels + k * IQ_GROUP);
    return true;
}

/* Finds the points, and fits the scale to them. */
static inline struct iq1_found iq1_finish(const struct iq1_loops *loops, const struct grid_search *tables,
                                          const struct iq1_kind *kind, const float *values, const float *weights,
                                          struct iq1_pending *pending)
{
    struct iq1_found found = {.down = pending->down, .scale = pending->scale};
    uint8_t *levels = pending->levels;
    bool on_grid = true;
    for (int k = 0, at = 0; at < kind->n; k++, at += IQ_GROUP)
        on_grid &= iq1_snap(loops, tables, pending->codes[k], values + at, weights + at,
                            iq1_numbers_of(kind, found.down, k), found.scale, levels + at, &found.points[k]);
    float sum_qx = 0, sum_q2 = 0;
    for (int i = 0; i < kind->n; i++) {
        float q = iq1_numbers_of(kind, found.down, i / IQ_GROUP)[levels[i]];
        sum_qx += weights[i] * q * values[i];
        sum_q2 += weights[i] * q * q;
    }
    if (!on_grid && sum_qx > 0 && sum_q2 > 0)
        found.scale = sum_qx / sum_q2;
    return found;
}

/* Searches the sub-blocks of a block; inline, so that the kind is a constant. Each step is taken for all before the
 * next one: a processor overlaps the chains of a step, and memory is loaded meanwhile. */
static inline void iq1_search(const struct iq1_loops *loops, const struct grid_search *tables,
                              const struct iq1_kind *kind, const float *values, const float *weights,
                              struct iq1_found *ret_found)
{
    enum { MOST_SUB_BLOCKS = IQ_ELEMENTS / IQ1_M_SUB_ELEMENTS };
    struct iq1_pending pending[MOST_SUB_BLOCKS];
    int n_sub = IQ_ELEMENTS / kind->n;
    for (int j = 0, at = 0; j < n_sub; j++, at += kind->n)
        pending[j].searched = iq1_begin(loops, kind, values + at, &pending[j]);
    for (int j = 0, at = 0; j < n_sub; j++, at += kind->n)
        if (pending[j].searched)
            pending[j].searched = iq1_divide(loops, tables, kind, values + at, weights + at, &pending[j]);
    for (int j = 0, at = 0; j < n_sub; j++, at += kind->n)
        ret_found[j] = pending[j].searched ? iq1_finish(loops, tables, kind, values + at, weights + at, &pending[j])
                                           : (struct iq1_found){0};
}

/* The blocks of IQ1_S and IQ1_M for decoders, each of which has its own way to decode a point of eight values. See
 * iq1.c for the formats. */

/* Decodes a point: (level - 1 + shift) * scale. */
typedef void iq1_point_function(const uint8_t levels[IQ_GROUP], float scale, float shift, float *values);

enum { IQ1_S_QS = 2, IQ1_S_QH = 34, IQ1_S_BYTES = 50, IQ1_S_SUB_BLOCKS = 8 };
enum { IQ1_M_QH = 32, IQ1_M_SCALES = 48, IQ1_M_BYTES = 56, IQ1_M_SUB_BLOCKS = 16 };

static inline void iq1_s_decode_by(iq1_point_function *decode_point, const uint8_t *block, float *values,
                                   size_t n_blocks)
{
    const struct grid *grid = grid_of(GRID_IQ1);
    for (size_t i = 0; i < n_blocks; i++, block += IQ1_S_BYTES) {
        float d = f16_load(block);
        for (int j = 0; j < IQ1_S_SUB_BLOCKS; j++) {
            unsigned high = (unsigned)read_le(block + IQ1_S_QH + 2 * j, 2);
            float scale = d * (float)(2 * (high >> 12 & 7) + 1), shift = high & 0x8000 ? -IQ1_SHIFT : IQ1_SHIFT;
            for (int k = 0; k < 4; k++, values += IQ_GROUP) {
                unsigned index = block[IQ1_S_QS + 4 * j + k] | (high >> 3 * k & 7) << 8;
                decode_point(grid_point(grid, index), scale, shift, values);
            }
        }
    }
}

/* Returns the F16 of a block of IQ1_M, a quarter of which is in each of the words that scales are in. */
static inline uint16_t iq1_m_load_d(const uint8_t *block)
{
    unsigned d = 0;
    for (int k = 0; k < 4; k++)
        d |= (unsigned)(block[IQ1_M_SCALES + 2 * k + 1] >> 4) << 4 * k;
    return (uint16_t)d;
}

static inline void iq1_m_decode_by(iq1_point_function *decode_point, const uint8_t *block, float *values,
                                   size_t n_blocks)
{
    const struct grid *grid = grid_of(GRID_IQ1);
    for (size_t i = 0; i < n_blocks; i++, block += IQ1_M_BYTES) {
        float d = f16_to_f32(iq1_m_load_d(block));
        for (int j = 0; j < IQ1_M_SUB_BLOCKS; j++) {
            unsigned share = (unsigned)read_le(block + IQ1_M_SCALES + 2 * (j / 4), 2) >> 3 * (j % 4) & 7;
            float scale = d * (float)(2 * share + 1);
            for (int k = 0; k < 2; k++, values += IQ_GROUP) {
                unsigned high = block[IQ1_M_QH + j] >> 4 * k & 15;
                unsigned index = block[2 * j + k] | (high & 7) << 8;
                decode_point(grid_point(grid, index), scale, high & 8 ? -IQ1_SHIFT : IQ1_SHIFT, values);
            }
        }
    }
}
