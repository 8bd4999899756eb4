/* Spherical interpolation of two tensors, each as one vector: slerp. */
#include "quant/arithmetic/torch_sum.h"
#include "quant/merge/tiles.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { CHUNK = 1 << 20 }; /* elements that mergekit reduces at a time: whole tiles */

struct slerp {
    struct merged merged;
    float t;
    struct finding *factors;
};

struct factors {
    float base, other;
};

/* The reductions of one chunk. */
struct chunk {
    struct torch_norm base_norm, other_norm;
    struct torch_total dot;
    float base_length, other_length; /* to divide by, for the dot product */
};

static bool add_norms(void *context, struct merge_tile *tile, struct error *error)
{
    struct chunk *chunk = context;
    torch_norm_add(&chunk->base_norm, tile->base, tile->n);
    torch_norm_add(&chunk->other_norm, tile->models[0], tile->n);
    return true;
}

static bool add_products(void *context, struct merge_tile *tile, struct error *error)
{
    struct chunk *chunk = context;
    tile->in.kernels->with_one(DIVIDE, tile->base, tile->n, chunk->base_length);
    tile->in.kernels->with_one(DIVIDE, tile->models[0], tile->n, chunk->other_length);
    tile->in.kernels->with_each(MULTIPLY, tile->base, tile->n, tile->models[0]);
    torch_total_add(&chunk->dot, tile->base, tile->n);
    return true;
}

/* One number for each chunk of both tensors. */
struct parts {
    size_t n;
    float *base, *other; /* norms; then in `base` dot products */
};

static bool measure_chunks(const struct merged *merged, merge_visit_function *visit, const struct factors *lengths,
                           const struct parts *parts, struct error *error)
{
    bool good = true;
    for (size_t i = 0; i < parts->n && good; i++) {
        uint64_t first = i * (uint64_t)CHUNK, left = merged->view.n_elements - first, n = left < CHUNK ? left : CHUNK;
        struct chunk chunk = {.base_length = lengths->base, .other_length = lengths->other};
        torch_norm_begin(&chunk.base_norm, &f32_dtype);
        torch_norm_begin(&chunk.other_norm, &f32_dtype);
        torch_total_begin(&chunk.dot, &f32_dtype, n);
        good = merge_walk(merged, first, n, visit, &chunk, error);
        parts->base[i] = visit == add_norms ? torch_norm_end(&chunk.base_norm) : torch_total_end(&chunk.dot);
        parts->other[i] = torch_norm_end(&chunk.other_norm);
    }
    return good;
}

/* Returns the norm of norms; 1 if it is nearly 0. */
static float length_of(const float *norms, size_t n)
{
    float norm = torch_norm_of(&f32_dtype, norms, n);
    return norm > 1e-8f ? norm : 1;
}

static struct factors factors_of(float dot, float t)
{
    const float nearly_parallel = 0.9995f;
    dot = dot > 1 ? 1 : dot < -1 ? -1 : dot;
    if (fabsf(dot) > nearly_parallel)
        return (struct factors){1 - t, t};
    float angle = torch_acos(dot), divisor = torch_sin(angle);
    return (struct factors){torch_sin((1 - t) * angle) / divisor, torch_sin(t * angle) / divisor};
}

static bool measure(const struct slerp *slerp, const struct parts *parts, struct factors *factors, struct error *error)
{
    const struct factors none = {1, 1};
    if (!measure_chunks(&slerp->merged, add_norms, &none, parts, error))
        return false;
    const struct factors lengths = {length_of(parts->base, parts->n), length_of(parts->other, parts->n)};
    if (!measure_chunks(&slerp->merged, add_products, &lengths, parts, error))
        return false;
    *factors = factors_of(torch_sum_few(parts->base, parts->n), slerp->t);
    return true;
}

static void *find_factors(const void *context, struct error *error)
{
    const struct slerp *slerp = context;
    size_t n = (size_t)((slerp->merged.view.n_elements + CHUNK - 1) / CHUNK);
    float *numbers = memory_alloc(2 * n * sizeof *numbers);
    struct factors *factors = finding_alloc(sizeof *factors);
    bool good = measure(slerp, &(struct parts){n, numbers, numbers + n}, factors, error);
    free(numbers);
    if (good)
        return factors;
    finding_discard(factors);
    return NULL;
}

static const float *compute(const struct merged *merged, struct merge_tile *tile, struct error *error)
{
    const struct slerp *slerp = (const struct slerp *)merged;
    const struct factors *factors = finding_get(slerp->factors, find_factors, slerp, error);
    if (factors == NULL)
        return NULL;
    tile->in.kernels->with_one(MULTIPLY, tile->base, tile->n, factors->base);
    tile->in.kernels->with_one(MULTIPLY, tile->models[0], tile->n, factors->other);
    tile->in.kernels->with_each(ADD, tile->base, tile->n, tile->models[0]);
    return tile->base;
}

static bool slerp_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return merge_read(view, first, count, out, compute, error);
}

static void slerp_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    merge_depends_on(view, ((const struct slerp *)view)->factors, first, count, to);
}

const struct view *merge_slerp(struct arena *arena, const struct merge_operands *operands)
{
    static const struct view_op op = {.name = "slerp", .cost = 1500, .read = slerp_read, .depends = slerp_depends};
    struct slerp *slerp = arena_alloc(arena, sizeof *slerp);
    assert(operands->base != NULL && operands->n_models == 1);
    merge_init(&slerp->merged, arena, &op, operands, true);
    slerp->t = (float)operands->t;
    slerp->factors = finding_new(arena, operands->findings);
    return &slerp->merged.view;
}
