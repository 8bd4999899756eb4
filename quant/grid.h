/* Grids: the points that the IQ formats choose from.
 *
 * An IQ format stores eight (or four) neighbouring magnitudes as the index of a point, of which there are far fewer than there
 * are combinations of levels. Which points there are was found by those who made the formats, from models of their time: no
 * rule gives them. The index of a point is its rank by code, the number whose digit i is the level of component i. */
#pragma once

#include <stdint.h>

enum grid_name { GRID_IQ1, GRID_IQ2_XXS, GRID_IQ2_XS, GRID_IQ2_S, GRID_IQ3_XXS, GRID_IQ3_S, GRIDS };

enum { GRID_MOST_POINTS = 2048 };

struct grid {
    unsigned dimension, n_levels, n_points;
    const uint8_t *levels; /* of point 0, then of point 1 ... */
};

/* Made on first use, by any thread. */
const struct grid *grid_of(enum grid_name name);

static inline const uint8_t *grid_point(const struct grid *grid, unsigned index)
{
    return grid->levels + index * grid->dimension;
}
