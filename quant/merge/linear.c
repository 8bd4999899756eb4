/* Methods of a few operations: a weighted sum and one model times a number, without a base, and nearswap. */
#include "quant/arithmetic/torch_sum.h"
#include "quant/merge/tiles.h"
#include "quant/views/convert.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    STRIP = 1024,     /* elements whose sums and values stay in the first-level cache */
    READ_ONCE = 16384 /* elements of each model that are read at once: those of a few stay in the second-level cache */
};

struct linear {
    struct merged merged;
    bool in_bf16;  /* everything: the models and the result */
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
    [CPU_PORTABLE] = add_product_portable,
    [CPU_NEON] = add_product_portable,
    [CPU_AVX2] = ON_X86(add_product_avx2),
    [CPU_AVX512] = ON_X86(add_product_avx512),
};

/* Returns the dtype that a model is read in: F32 if it has no elements of its own. */
static const struct dtype *unit_dtype(const struct view *model)
{
    return model->dtype->block_elements == 1 ? model->dtype : &f32_dtype;
}

/* Reads units of each model, all together because one large read is faster than many. */
static bool read_units(const struct linear *linear, unsigned char **units, uint64_t first, size_t n,
                       struct error *error)
{
    bool good = true;
    for (size_t i = 0; i < linear->merged.n_models && good; i++) {
        const struct view *model = linear->merged.models[i];
        good = convert_read(model, encoding_of(unit_dtype(model)), first, n, units[i], error);
    }
    return good;
}

/* Computes a strip that begins `at` elements after the units. */
static void sum_strip(const struct linear *linear, const struct rounded *in, unsigned char *const *units, size_t at,
                      size_t n, void *out)
{
    float sums[STRIP], values[STRIP];
    add_product_function *add = add_products[cpu_level()];
    for (size_t i = 0; i < linear->merged.n_models; i++) {
        const struct dtype *dtype = unit_dtype(linear->merged.models[i]);
        dtype_kernels(dtype).decode(units[i] + at * dtype->block_bytes, values, n);
        if (dtype != in->dtype)
            rounded_values(in, values, n);
        add(sums, values, linear->weights[i], n, i == 0);
    }
    if (linear->divisor != 1)
        in->kernels->with_one(DIVIDE, sums, n, linear->divisor);
    dtype_kernels(in->dtype).encode(sums, out, n);
}

static void sum_units(const struct linear *linear, unsigned char *const *units, size_t n, unsigned char *out)
{
    const struct dtype *dtype = linear->merged.view.dtype;
    const struct weighted_terms terms = {(const unsigned char *const *)units, linear->weights, linear->merged.n_models,
                                         linear->divisor};
    struct rounded in = rounded_in(dtype);
    if (linear->in_bf16) {
        weighted_sum_at(cpu_level())(&terms, 0, n, out);
        return;
    }
    for (size_t at = 0, strip; at < n; at += strip) {
        strip = n - at < STRIP ? n - at : STRIP;
        sum_strip(linear, &in, units, at, strip, out + at * dtype->block_bytes);
    }
}

/* Allocates room for n elements of each model; free() releases all. */
static unsigned char **new_units(const struct linear *linear, size_t n)
{
    size_t n_models = linear->merged.n_models, n_bytes = n_models * sizeof(unsigned char *);
    for (size_t i = 0; i < n_models; i++)
        n_bytes += n * unit_dtype(linear->merged.models[i])->block_bytes;
    unsigned char **units = memory_alloc(n_bytes), *at = (unsigned char *)(units + n_models);
    for (size_t i = 0; i < n_models; i++) {
        units[i] = at;
        at += n * unit_dtype(linear->merged.models[i])->block_bytes;
    }
    return units;
}

static bool linear_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct linear *linear = (const struct linear *)view;
    unsigned char **units = new_units(linear, count < READ_ONCE ? (size_t)count : READ_ONCE);
    bool good = true;
    for (uint64_t done = 0, n; done < count && good; done += n) {
        n = count - done < READ_ONCE ? count - done : READ_ONCE;
        good = read_units(linear, units, first + done, (size_t)n, error);
        if (good)
            sum_units(linear, units, (size_t)n, (unsigned char *)out + done * view->dtype->block_bytes);
    }
    free(units);
    return good;
}

const struct view *merge_linear(struct arena *arena, const struct merge_operands *operands)
{
    static const struct view_op op = {.name = "linear", .cost = 700, .read = linear_read, .depends = merge_depends};
    struct linear *linear = arena_alloc(arena, sizeof *linear + operands->n_models * sizeof *linear->weights);
    merge_init(&linear->merged, arena, &op, operands, false);
    linear->in_bf16 = operands->dtype == &bf16_dtype;
    for (size_t i = 0; i < operands->n_models; i++) {
        linear->weights[i] = (float)operands->models[i].weight;
        linear->in_bf16 &= operands->models[i].view->dtype == &bf16_dtype;
    }
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

/* nearswap: elements of the base move to those of the model, the more the nearer they are. */

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
