/* Methods without a base: a weighted sum, and one model times a number. */
#include "quant/convert.h"
#include "quant/merge_tiles.h"
#include "quant/torch_sum.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { STRIP = 1024 }; /* elements whose sums and values stay in the first-level cache */

struct linear {
    struct merged merged;
    float divisor; /* 1: nothing is divided */
    float weights[];
};

/* Makes sums of products, or adds products to them. */
typedef void add_product_function(float *sums, const float *values, float weight, size_t n, bool first);

static inline void add_product(float *restrict sums, const float *restrict values, float weight, size_t n, bool first)
{
    if (first)
        for (size_t i = 0; i < n; i++)
            sums[i] = fmaf(values[i], weight, 0);
    else
        for (size_t i = 0; i < n; i++)
            sums[i] = fmaf(values[i], weight, sums[i]);
}

#define DEFINE_ADD_PRODUCT_AT(name, level, ...)                                                                        \
    __VA_ARGS__ static void name##_##level(float *sums, const float *values, float weight, size_t n, bool first)       \
    {                                                                                                                  \
        name(sums, values, weight, n, first);                                                                          \
    }
DEFINE_LEVELS(DEFINE_ADD_PRODUCT_AT, add_product)

static add_product_function *const add_products[CPU_LEVELS] = {
    add_product_portable,
    ON_X86(add_product_avx2),
    ON_X86(add_product_avx512),
};

/* Stored units of the models, read together because one large read is faster than many. */
struct units {
    const struct dtype *dtype; /* the model's own; F32 for those that have no elements of their own */
    unsigned char *bytes;
};

static bool read_units(const struct linear *linear, struct units *units, uint64_t first, size_t n, struct error *error)
{
    bool good = true;
    for (size_t i = 0; i < linear->merged.n_models && good; i++) {
        const struct view *model = linear->merged.models[i];
        good = convert_read(model, encoding_of(units[i].dtype), first, n, units[i].bytes, error);
    }
    return good;
}

/* Computes a strip that begins `at` elements after the units. */
static void sum_strip(const struct linear *linear, const struct rounded *in, const struct units *units, size_t at,
                      size_t n, void *out)
{
    float sums[STRIP], values[STRIP];
    add_product_function *add = add_products[cpu_level()];
    for (size_t i = 0; i < linear->merged.n_models; i++) {
        const struct dtype *dtype = units[i].dtype;
        dtype_kernels(dtype).decode(units[i].bytes + at * dtype->block_bytes, values, n);
        if (dtype != in->dtype)
            rounded_values(in, values, n);
        add(sums, values, linear->weights[i], n, i == 0);
    }
    if (linear->divisor != 1)
        in->kernels->with_one(DIVIDE, sums, n, linear->divisor);
    dtype_kernels(in->dtype).encode(sums, out, n);
}

static struct units *new_units(const struct linear *linear, size_t n)
{
    struct units *units = memory_alloc(linear->merged.n_models * sizeof *units);
    for (size_t i = 0; i < linear->merged.n_models; i++) {
        const struct dtype *dtype = linear->merged.models[i]->dtype;
        units[i].dtype = dtype->block_elements == 1 ? dtype : &f32_dtype;
        units[i].bytes = memory_alloc(n * units[i].dtype->block_bytes);
    }
    return units;
}

static bool linear_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct linear *linear = (const struct linear *)view;
    struct rounded in = rounded_in(view->dtype);
    struct units *units = new_units(linear, count < MERGE_TILE ? (size_t)count : MERGE_TILE);
    unsigned char *to = out;
    bool good = true;
    for (uint64_t done = 0, n; done < count && good; done += n) {
        n = count - done < MERGE_TILE ? count - done : MERGE_TILE;
        good = read_units(linear, units, first + done, (size_t)n, error);
        for (size_t at = 0, strip; at < n && good; at += strip, to += strip * view->dtype->block_bytes) {
            strip = n - at < STRIP ? (size_t)n - at : STRIP;
            sum_strip(linear, &in, units, at, strip, to);
        }
    }
    for (size_t i = 0; i < linear->merged.n_models; i++)
        free(units[i].bytes);
    free(units);
    return good;
}

const struct view *merge_linear(struct arena *arena, const struct merge_operands *operands)
{
    static const struct view_op op = {.name = "linear", .cost = 1000, .read = linear_read, .depends = merge_depends};
    struct linear *linear = arena_alloc(arena, sizeof *linear + operands->n_models * sizeof *linear->weights);
    merge_init(&linear->merged, arena, &op, operands, false);
    for (size_t i = 0; i < operands->n_models; i++)
        linear->weights[i] = (float)operands->models[i].weight;
    linear->divisor = operands->normalize ? torch_sum_few(linear->weights, operands->n_models) : 1;
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
