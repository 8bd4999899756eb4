/* Grids: the points among which the IQ formats choose.
 *
 * An IQ format stores eight (or four) neighbouring magnitudes as the index of a point. A grid has far fewer points than
 * there are combinations of levels. The authors of the formats chose the points from models of their time; no rule
 * generates them. The index of a point is its rank by code, the number whose digit i is the level of component i. */
#pragma once

#include <stdint.h>

enum grid_name { GRID_IQ1, GRID_IQ2_XXS, GRID_IQ2_XS, GRID_IQ2_S, GRID_IQ3_XXS, GRID_IQ3_S, GRIDS };

enum { GRID_MOST_POINTS = 2048 };

struct grid {
    unsigned dimension, n_levels, n_points;
    const uint8_t *levels; /* those of point 0, of point 1 ... */
};

/* Returns a grid, made on first use. Safe from any thread. */
const struct grid *grid_of(enum grid_name name);

/* Tables for encoders: which combinations of levels are points, and the neighbours of all others, by code. */
struct grid_search {
    const struct grid *grid;
    const int16_t *index; /* of the point with this code; negative: not a point */
    /* where the neighbours of each combination begin, and where the last ones end */
    const uint32_t *first;
    const uint16_t *neighbour; /* indices of points, by distance and then in ascending order */
    /* the levels of these points: two bits each, three in a grid of four components */
    const uint16_t *packed;
};

/* Returns the tables of a grid, made on first use. Safe from any thread. The neighbours of a combination are the points
 * at the one to three smallest distances; the grid determines how many. */
const struct grid_search *grid_search_of(enum grid_name name);

static inline unsigned grid_code(const struct grid *grid, const uint8_t *levels)
{
    unsigned code = 0;
    for (unsigned i = grid->dimension; i-- > 0;)
        code = code * grid->n_levels + levels[i];
    return code;
}

static inline const uint8_t *grid_point(const struct grid *grid, unsigned index)
{
    return grid->levels + index * grid->dimension;
}

/* Shared by the IQ formats: blocks of 256 values in groups of eight, with points of a grid as magnitudes, and separate
 * bits as signs. Source: ggml-quants.c of llama.cpp. */

enum { IQ_ELEMENTS = 256, IQ_GROUP = 8 };

/* Returns the signs of a group from the seven bits that some formats store: the number of negative values is even. */
static inline unsigned iq_even_signs(unsigned stored)
{
    return stored | (unsigned)__builtin_parity(stored) << 7;
}

/* Packs four times seven signs, and a share in the highest four bits. */
static inline void iq_pack_signs(const uint8_t signs[4], unsigned share, uint8_t *bytes)
{
    uint32_t bits = share << 28;
    for (int k = 0; k < 4; k++)
        bits |= (uint32_t)signs[k] << 7 * k;
    for (int k = 0; k < 4; k++)
        bytes[k] = (uint8_t)(bits >> 8 * k);
}
