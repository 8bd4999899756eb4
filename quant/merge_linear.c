/* Methods without a base: a weighted sum, and one model times a number. */
#include "quant/merge_tiles.h"

#include "quant/torch_sum.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct linear {
    struct merged merged;
    bool normalize;
    float divisor;
    float weights[];
};

static inline void add_product(float *restrict sums, const float *restrict values, float weight, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sums[i] = fmaf(values[i], weight, sums[i]);
}

typedef void add_product_function(float *sums, const float *values, float weight, size_t n);

#define DEFINE_ADD_PRODUCT_AT(name, level, ...)                                                                        \
    __VA_ARGS__ static void name##_##level(float *sums, const float *values, float weight, size_t n)                   \
    {                                                                                                                  \
        name(sums, values, weight, n);                                                                                 \
    }
DEFINE_LEVELS(DEFINE_ADD_PRODUCT_AT, add_product)

static add_product_function *const add_products[CPU_LEVELS] = {
    add_product_portable,
    ON_X86(add_product_avx2),
    ON_X86(add_product_avx512),
};

static const float *compute_linear(const struct merged *merged, struct merge_tile *tile, struct error *error)
{
    const struct linear *linear = (const struct linear *)merged;
    add_product_function *add = add_products[cpu_level()];
    float *sums = tile->spare[0];
    memset(sums, 0, tile->n * sizeof *sums);
    for (size_t i = 0; i < merged->n_models; i++)
        add(sums, tile->models[i], linear->weights[i], tile->n);
    if (linear->normalize)
        tile->in.kernels->with_one(DIVIDE, sums, tile->n, linear->divisor);
    return sums;
}

static bool linear_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return merge_read(view, first, count, out, compute_linear, error);
}

const struct view *merge_linear(struct arena *arena, const struct merge_operands *operands)
{
    static const struct view_op op = {.name = "linear", .cost = 1000, .read = linear_read, .depends = merge_depends};
    struct linear *linear = arena_alloc(arena, sizeof *linear + operands->n_models * sizeof *linear->weights);
    merge_init(&linear->merged, arena, &op, operands, false);
    for (size_t i = 0; i < operands->n_models; i++)
        linear->weights[i] = (float)operands->models[i].weight;
    linear->normalize = operands->normalize;
    linear->divisor = torch_sum_few(linear->weights, operands->n_models);
    return &linear->merged.view;
}

struct scaled {
    struct merged merged;
    float scale;
};

static const float *compute_scaled(const struct merged *merged, struct merge_tile *tile, struct error *error)
{
    tile->in.kernels->with_one(MULTIPLY, tile->models[0], tile->n, ((const struct scaled *)merged)->scale);
    return tile->models[0];
}

static bool scaled_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return merge_read(view, first, count, out, compute_scaled, error);
}

const struct view *merge_scaled(struct arena *arena, const struct merge_operands *operands)
{
    static const struct view_op op = {.name = "scaled", .cost = 600, .read = scaled_read, .depends = merge_depends};
    struct scaled *scaled = arena_alloc(arena, sizeof *scaled);
    assert(operands->n_models == 1);
    merge_init(&scaled->merged, arena, &op, operands, false);
    scaled->scale = (float)operands->models[0].scale;
    return &scaled->merged.view;
}
