/* Spherical interpolation of two tensors, each as one vector: slerp. */
#include "quant/arithmetic/torch_sum.h"
#include "quant/merge/tiles.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static bool slerp_add_norms(void *context, struct merge_tile *tile, struct error *error)
{
    struct chunk *chunk = context;
    torch_norm_add(&chunk->base_norm, tile->base, tile->n);
    torch_norm_add(&chunk->other_norm, tile->models[0], tile->n);
    return true;
}

static bool slerp_add_products(void *context, struct merge_tile *tile, struct error *error)
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
        parts->base[i] = visit == slerp_add_norms ? torch_norm_end(&chunk.base_norm) : torch_total_end(&chunk.dot);
        parts->other[i] = torch_norm_end(&chunk.other_norm);
    }
    return good;
}

/* Returns the norm of norms; 1 if it is nearly 0. */
static float slerp_length_of(const float *norms, size_t n)
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
    if (!measure_chunks(&slerp->merged, slerp_add_norms, &none, parts, error))
        return false;
    const struct factors lengths = {slerp_length_of(parts->base, parts->n), slerp_length_of(parts->other, parts->n)};
    if (!measure_chunks(&slerp->merged, slerp_add_products, &lengths, parts, error))
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

static const float *slerp_compute(const struct merged *merged, struct merge_tile *tile, struct error *error)
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
    return merge_read(view, first, count, out, slerp_compute, error);
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

/* nuslerp: spherical interpolation of two tensors, or of their differences from a base: as one vector each, or by rows.
 */

struct nuslerp {
    struct merged merged;
    double t;
    bool by_rows, by_columns; /* by_columns: the rows are columns in memory */
    struct finding *arc;      /* of the whole, unless by rows */
};

/* What two vectors are multiplied by. */
struct arc {
    float first, second;
    float divisor; /* of the sum; 0: not divided */
};

static float at_least(float value, float least)
{
    return value < least ? least : value;
}

/* Returns the arc between vectors, of which the cosine is known; each step is rounded. */
static struct arc arc_of(const struct rounded *in, float cosine, double t)
{
    const struct dtype *dtype = in->dtype;
    float squared = rounded_number(dtype, cosine * cosine);
    if (rounded_number(dtype, 1 - squared) <= rounded_number(dtype, 1e-16))
        return (struct arc){(float)(1 - t), (float)t, 0};
    float angle = rounded_number(dtype, torch_acos(cosine));
    float first = rounded_number(dtype, (float)(1 - t) * angle), second = rounded_number(dtype, (float)t * angle);
    return (struct arc){rounded_number(dtype, torch_sin(first)), rounded_number(dtype, torch_sin(second)),
                        rounded_number(dtype, torch_sin(angle))};
}

/* Returns what the vector is divided by to have the length 1. */
static float nuslerp_length_of(const struct rounded *in, struct torch_norm *norm)
{
    return at_least(rounded_number(in->dtype, torch_norm_end(norm)), rounded_number(in->dtype, 1e-7));
}

static float limited_cosine(const struct rounded *in, float cosine)
{
    cosine = rounded_number(in->dtype, cosine);
    return cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
}

/* Replaces both vectors by the point of the arc, in `a`. */
static void interpolate(const struct rounded *in, const struct arc *arc, float *a, float *b, size_t n)
{
    rounded_one(in, MULTIPLY, a, n, arc->first);
    rounded_one(in, MULTIPLY, b, n, arc->second);
    rounded_each(in, ADD, a, n, b);
    if (arc->divisor != 0)
        rounded_one(in, DIVIDE, a, n, arc->divisor);
}

static void begin_norm(const struct nuslerp *nuslerp, struct torch_norm *norm)
{
    if (nuslerp->by_columns)
        torch_norm_begin_apart(norm);
    else
        torch_norm_begin(norm, nuslerp->merged.view.dtype);
}

/* Returns the sum of the `n` values of a row, which is a column in memory if those of the whole are. */
static float sum_of_row(const struct nuslerp *nuslerp, const float *values, uint64_t row, size_t n)
{
    const struct view *view = &nuslerp->merged.view;
    return nuslerp->by_columns ? torch_sum_column(values, n, row, view->n_elements / n)
                               : torch_total_of(view->dtype, values, n);
}

static void interpolate_row(const struct nuslerp *nuslerp, struct merge_tile *tile, size_t first, size_t n)
{
    const struct rounded *in = &tile->in;
    float *a = tile->models[0] + first, *b = tile->models[1] + first, *u = tile->spare[0], *v = tile->spare[1];
    struct torch_norm norms[2];
    for (int i = 0; i < 2; i++) {
        begin_norm(nuslerp, &norms[i]);
        torch_norm_add(&norms[i], tile->models[i] + first, n);
    }
    memcpy(u, a, n * sizeof *u);
    memcpy(v, b, n * sizeof *v);
    rounded_one(in, DIVIDE, u, n, nuslerp_length_of(in, &norms[0]));
    rounded_one(in, DIVIDE, v, n, nuslerp_length_of(in, &norms[1]));
    rounded_each(in, MULTIPLY, u, n, v);
    float cosine = sum_of_row(nuslerp, u, (tile->first + first) / n, n);
    struct arc arc = arc_of(in, limited_cosine(in, cosine), nuslerp->t);
    interpolate(in, &arc, a, b, n);
}

/* The reductions of the whole. */
struct whole {
    const struct merged *merged;
    struct torch_norm norms[2];
    float lengths[2];
    struct torch_total dot;
};

static bool nuslerp_add_norms(void *context, struct merge_tile *tile, struct error *error)
{
    struct whole *whole = context;
    merge_subtract_base(whole->merged, tile);
    for (int i = 0; i < 2; i++)
        torch_norm_add(&whole->norms[i], tile->models[i], tile->n);
    return true;
}

static bool nuslerp_add_products(void *context, struct merge_tile *tile, struct error *error)
{
    struct whole *whole = context;
    merge_subtract_base(whole->merged, tile);
    for (int i = 0; i < 2; i++)
        rounded_one(&tile->in, DIVIDE, tile->models[i], tile->n, whole->lengths[i]);
    rounded_each(&tile->in, MULTIPLY, tile->models[0], tile->n, tile->models[1]);
    torch_total_add(&whole->dot, tile->models[0], tile->n);
    return true;
}

static void *find_arc(const void *context, struct error *error)
{
    const struct nuslerp *nuslerp = context;
    const struct view *view = &nuslerp->merged.view;
    struct whole whole = {.merged = &nuslerp->merged};
    struct rounded in = rounded_in(view->dtype);
    torch_norm_begin(&whole.norms[0], view->dtype);
    torch_norm_begin(&whole.norms[1], view->dtype);
    torch_total_begin(&whole.dot, view->dtype, view->n_elements);
    if (!merge_walk(whole.merged, 0, view->n_elements, nuslerp_add_norms, &whole, error))
        return NULL;
    for (int i = 0; i < 2; i++)
        whole.lengths[i] = nuslerp_length_of(&in, &whole.norms[i]);
    if (!merge_walk(whole.merged, 0, view->n_elements, nuslerp_add_products, &whole, error))
        return NULL;
    struct arc *arc = finding_alloc(sizeof *arc);
    *arc = arc_of(&in, limited_cosine(&in, torch_total_end(&whole.dot)), nuslerp->t);
    return arc;
}

static const float *nuslerp_compute(const struct merged *merged, struct merge_tile *tile, struct error *error)
{
    const struct nuslerp *nuslerp = (const struct nuslerp *)merged;
    size_t row = (size_t)view_row_elements(&merged->view);
    const struct arc *arc = NULL;
    if (!nuslerp->by_rows && (arc = finding_get(nuslerp->arc, find_arc, nuslerp, error)) == NULL)
        return NULL;
    merge_subtract_base(merged, tile);
    if (arc != NULL)
        interpolate(&tile->in, arc, tile->models[0], tile->models[1], tile->n);
    for (size_t i = 0; arc == NULL && i < tile->n; i += row)
        interpolate_row(nuslerp, tile, i, row);
    if (tile->base == NULL)
        return tile->models[0];
    rounded_each(&tile->in, ADD, tile->base, tile->n, tile->models[0]);
    return tile->base;
}

static bool nuslerp_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return merge_read(view, first, count, out, nuslerp_compute, error);
}

static void nuslerp_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct nuslerp *nuslerp = (const struct nuslerp *)view;
    if (nuslerp->by_rows)
        merge_depends(view, first, count, to);
    else
        merge_depends_on(view, nuslerp->arc, first, count, to);
}

static const struct view *make_nuslerp(struct arena *arena, const struct merge_operands *operands, bool by_columns)
{
    static const struct view_op op = {
        .name = "nuslerp", .cost = 3000, .read = nuslerp_read, .depends = nuslerp_depends};
    struct nuslerp *nuslerp = arena_alloc(arena, sizeof *nuslerp);
    double first = operands->models[0].weight, second = operands->models[1].weight, sum = first + second;
    merge_init(&nuslerp->merged, arena, &op, operands, true);
    nuslerp->t = fabs(sum) < 1e-6 ? 0.5 : second / sum;
    nuslerp->by_rows = !operands->flatten;
    nuslerp->by_columns = by_columns;
    if (nuslerp->by_rows)
        nuslerp->merged.step = merge_step_of_rows(&nuslerp->merged.view);
    nuslerp->arc = finding_new(arena, operands->findings);
    return &nuslerp->merged.view;
}

/* Returns the first and the last axis swapped. */
static const struct view *swap_ends(struct arena *arena, const struct view *view)
{
    unsigned order[VIEW_MAX_RANK];
    for (unsigned i = 0; i < view->rank; i++)
        order[i] = i == 0 ? view->rank - 1 : i == view->rank - 1 ? 0 : i;
    return view_permute(arena, view, order);
}

const struct view *merge_nuslerp(struct arena *arena, const struct merge_operands *operands)
{
    assert(operands->n_models == 2);
    if (operands->flatten || !operands->row_wise || operands->models[0].view->rank < 2)
        return make_nuslerp(arena, operands, false);
    struct merge_model models[2] = {operands->models[0], operands->models[1]};
    struct merge_operands swapped = *operands;
    for (int i = 0; i < 2; i++)
        models[i].view = swap_ends(arena, models[i].view);
    swapped.models = models;
    if (operands->base != NULL)
        swapped.base = swap_ends(arena, operands->base);
    return swap_ends(arena, make_nuslerp(arena, &swapped, true));
}
