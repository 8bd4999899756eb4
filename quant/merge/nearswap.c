/* nearswap: elements of the base move to those of the model, the more the nearer they are. */
#include "quant/merge/tiles.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct nearswap {
    struct merged merged;
    float t, least; /* the least distance that counts */
};

static void raise_to(float *values, size_t n, float least)
{
    for (size_t i = 0; i < n; i++)
        values[i] = fabsf(values[i]) < least ? least : fabsf(values[i]);
}

static void limit_to_one(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = values[i] > 1 ? 1 : values[i] < 0 ? 0 : values[i];
}

static void fill(float *values, size_t n, float value)
{
    for (size_t i = 0; i < n; i++)
        values[i] = value;
}

/* A number divided by a tensor is its reciprocal times the number, as torch has it. */
static const float *compute(const struct merged *merged, struct merge_tile *tile, struct error *error)
{
    const struct nearswap *nearswap = (const struct nearswap *)merged;
    float *base = tile->base, *model = tile->models[0], *distances = tile->spare[0], *shares = tile->spare[1];
    memcpy(distances, base, tile->n * sizeof *distances);
    rounded_each(&tile->in, SUBTRACT, distances, tile->n, model);
    raise_to(distances, tile->n, nearswap->least);
    fill(shares, tile->n, 1);
    rounded_each(&tile->in, DIVIDE, shares, tile->n, distances);
    rounded_one(&tile->in, MULTIPLY, shares, tile->n, nearswap->t);
    limit_to_one(shares, tile->n);
    rounded_each(&tile->in, MULTIPLY, model, tile->n, shares);
    fill(distances, tile->n, 1);
    rounded_each(&tile->in, SUBTRACT, distances, tile->n, shares);
    rounded_each(&tile->in, MULTIPLY, base, tile->n, distances);
    rounded_each(&tile->in, ADD, model, tile->n, base);
    return model;
}

static bool nearswap_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return merge_read(view, first, count, out, compute, error);
}

const struct view *merge_nearswap(struct arena *arena, const struct merge_operands *operands)
{
    static const struct view_op op = {
        .name = "nearswap", .cost = 3000, .read = nearswap_read, .depends = merge_depends};
    struct nearswap *nearswap = arena_alloc(arena, sizeof *nearswap);
    assert(operands->base != NULL && operands->n_models == 1);
    merge_init(&nearswap->merged, arena, &op, operands, true);
    nearswap->t = (float)operands->t;
    nearswap->least = rounded_number(operands->dtype, 1e-6);
    return &nearswap->merged.view;
}
