#include "models/centered.h"

#include "quant/convert.h"

#include <stdlib.h>
#include <string.h>

/* The order of torch's sum of a vector (aten/src/ATen/native/cpu/SumKernel.cpp): lanes of eight, four sums of each,
 * whose partial sums are kept apart after every sixteenth step, and the rest one by one. */
enum { LANES = 8, SUMS = 4, LEVELS = 4, LEVEL_STEPS = 16, LEVEL_BITS = 4 };

struct sums {
    float at[LEVELS][SUMS][LANES];
};

static void add_lanes(float *to, const float *from)
{
    for (unsigned i = 0; i < LANES; i++)
        to[i] += from[i];
}

/* Moves sums up by levels: the first one after each LEVEL_STEPS steps, the next after as many of those. */
static void carry(struct sums *sums, size_t n_steps)
{
    for (unsigned level = 1; level < LEVELS; level++) {
        for (unsigned i = 0; i < SUMS; i++)
            add_lanes(sums->at[level][i], sums->at[level - 1][i]);
        memset(sums->at[level - 1], 0, sizeof sums->at[level - 1]);
        if ((n_steps & ((size_t)(LEVEL_STEPS - 1) << level * LEVEL_BITS)) != 0)
            break;
    }
}

static float sum(const float *values, size_t n)
{
    struct sums sums = {0};
    size_t n_vectors = n / LANES, n_steps = n_vectors / SUMS;
    for (size_t step = 0; step < n_steps; step++) {
        for (unsigned i = 0; i < SUMS; i++)
            add_lanes(sums.at[0][i], values + (step * SUMS + i) * LANES);
        if ((step + 1) % LEVEL_STEPS == 0)
            carry(&sums, step + 1);
    }
    for (unsigned level = 1; level < LEVELS; level++)
        for (unsigned i = 0; i < SUMS; i++)
            add_lanes(sums.at[0][i], sums.at[level][i]);
    for (size_t i = n_steps * SUMS; i < n_vectors; i++)
        add_lanes(sums.at[0][0], values + i * LANES);
    for (unsigned i = 1; i < SUMS; i++)
        add_lanes(sums.at[0][0], sums.at[0][i]);
    float total = 0;
    for (size_t i = n_vectors * LANES; i < n; i++)
        total += values[i];
    for (unsigned i = 0; i < LANES; i++)
        total += sums.at[0][0][i];
    return total;
}

struct centered {
    struct view view;
    const struct view *inner;
};

static bool centered_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    size_t n = (size_t)view->n_elements;
    float *values = memory_alloc(n * sizeof *values), *to = out;
    bool read = convert_read(((const struct centered *)view)->inner, encoding_of(&f32_dtype), 0, n, values, error);
    if (read) {
        float mean = sum(values, n) / (float)n;
        for (uint64_t i = 0; i < count; i++)
            to[i] = values[first + i] - mean;
    }
    free(values);
    return read;
}

static const struct view_op centered_op = {"centered", centered_read, NULL, NULL};

const struct view *view_centered(struct arena *arena, const struct view *vector)
{
    if (vector->rank != 1 || vector->n_elements == 0 || vector->n_elements > CENTERED_MAX_ELEMENTS)
        return NULL;
    struct centered *centered = arena_alloc(arena, sizeof *centered);
    view_init_shared(&centered->view, &centered_op, &f32_dtype, 1, vector->shape);
    centered->inner = vector;
    return &centered->view;
}
