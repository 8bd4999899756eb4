/* multislerp: models as points of a sphere around the base, averaged in the tangent space at their weighted mean. */
#include "quant/arithmetic/torch_sum.h"
#include "quant/merge/tiles.h"
#include "quant/views/convert.h"

#include <stdlib.h>
#include <string.h>

struct multislerp {
    struct merged merged;
    double eps;
    const float *weights;
    struct finding *sphere;
};

/* The numbers found so far, in passes over the tensor. */
struct sphere {
    bool opposite;     /* the mean of two models is nearly 0: they are added instead */
    float mean_length; /* 0: not known yet */
    float cosine, sine_share, radius;
    struct {
        float length, divisor, dot;
    } models[];
};

/* One pass. */
struct pass {
    const struct multislerp *multislerp;
    struct sphere *sphere;
    struct torch_norm norm; /* of what the pass is for */
    struct torch_norm *norms;
    struct torch_total *dots;
};

/* Sums the models times their weights. */
static void sum_weighted(const struct multislerp *multislerp, const struct merge_tile *tile, float *sums)
{
    float **terms = merge_arrays_new(&multislerp->merged, tile);
    for (size_t i = 0; i < multislerp->merged.n_models; i++) {
        memcpy(terms[i], tile->models[i], tile->n * sizeof **terms);
        rounded_one(&tile->in, MULTIPLY, terms[i], tile->n, multislerp->weights[i]);
    }
    merge_sum(&multislerp->merged, tile, terms, sums);
    free(terms);
}

/* Replaces the models by their units, and puts the mean of these, of length 1 if that is known, into `mean`. */
static void take_mean(const struct multislerp *multislerp, const struct sphere *sphere, struct merge_tile *tile,
                      float *mean)
{
    merge_subtract_base(&multislerp->merged, tile);
    for (size_t i = 0; i < multislerp->merged.n_models; i++)
        rounded_one(&tile->in, DIVIDE, tile->models[i], tile->n, sphere->models[i].divisor);
    sum_weighted(multislerp, tile, mean);
    if (sphere->mean_length != 0)
        rounded_one(&tile->in, DIVIDE, mean, tile->n, sphere->mean_length);
}

static void take_tangents(const struct multislerp *multislerp, const struct sphere *sphere, struct merge_tile *tile,
                          float *mean, float *sum)
{
    float *projection = tile->spare[2];
    take_mean(multislerp, sphere, tile, mean);
    for (size_t i = 0; i < multislerp->merged.n_models; i++) {
        memcpy(projection, mean, tile->n * sizeof *projection);
        rounded_one(&tile->in, MULTIPLY, projection, tile->n, sphere->models[i].dot);
        rounded_each(&tile->in, SUBTRACT, tile->models[i], tile->n, projection);
    }
    sum_weighted(multislerp, tile, sum);
}

static bool add_lengths(void *context, struct merge_tile *tile, struct error *error)
{
    struct pass *pass = context;
    merge_subtract_base(&pass->multislerp->merged, tile);
    for (size_t i = 0; i < pass->multislerp->merged.n_models; i++)
        torch_norm_add(&pass->norms[i], tile->models[i], tile->n);
    return true;
}

static bool add_mean(void *context, struct merge_tile *tile, struct error *error)
{
    struct pass *pass = context;
    take_mean(pass->multislerp, pass->sphere, tile, tile->spare[0]);
    torch_norm_add(&pass->norm, tile->spare[0], tile->n);
    return true;
}

static bool add_dots(void *context, struct merge_tile *tile, struct error *error)
{
    struct pass *pass = context;
    take_mean(pass->multislerp, pass->sphere, tile, tile->spare[0]);
    for (size_t i = 0; i < pass->multislerp->merged.n_models; i++) {
        rounded_each(&tile->in, MULTIPLY, tile->models[i], tile->n, tile->spare[0]);
        torch_total_add(&pass->dots[i], tile->models[i], tile->n);
    }
    return true;
}

static bool add_tangent(void *context, struct merge_tile *tile, struct error *error)
{
    struct pass *pass = context;
    take_tangents(pass->multislerp, pass->sphere, tile, tile->spare[0], tile->spare[1]);
    torch_norm_add(&pass->norm, tile->spare[1], tile->n);
    return true;
}

static bool walk(struct pass *pass, merge_visit_function *visit, struct error *error)
{
    const struct merged *merged = &pass->multislerp->merged;
    torch_norm_begin(&pass->norm, merged->view.dtype);
    return merge_walk(merged, 0, merged->view.n_elements, visit, pass, error);
}

static bool find_lengths(struct pass *pass, struct error *error)
{
    const struct merged *merged = &pass->multislerp->merged;
    const struct dtype *dtype = merged->view.dtype;
    float *terms = memory_alloc(merged->n_models * sizeof *terms);
    for (size_t i = 0; i < merged->n_models; i++)
        torch_norm_begin(&pass->norms[i], dtype);
    bool good = walk(pass, add_lengths, error);
    for (size_t i = 0; i < merged->n_models && good; i++) {
        float length = rounded_number(dtype, torch_norm_end(&pass->norms[i]));
        pass->sphere->models[i].length = length;
        pass->sphere->models[i].divisor = rounded_number(dtype, length + rounded_number(dtype, pass->multislerp->eps));
        terms[i] = rounded_number(dtype, length * pass->multislerp->weights[i]);
    }
    if (good)
        pass->sphere->radius = rounded_number(dtype, torch_sum_few(terms, merged->n_models));
    free(terms);
    return good;
}

static bool find_dots(struct pass *pass, struct error *error)
{
    const struct merged *merged = &pass->multislerp->merged;
    for (size_t i = 0; i < merged->n_models; i++)
        torch_total_begin(&pass->dots[i], merged->view.dtype, merged->view.n_elements);
    if (!walk(pass, add_dots, error))
        return false;
    for (size_t i = 0; i < merged->n_models; i++)
        pass->sphere->models[i].dot = rounded_number(merged->view.dtype, torch_total_end(&pass->dots[i]));
    return true;
}

static bool find_tangent(struct pass *pass, struct error *error)
{
    const struct dtype *dtype = pass->multislerp->merged.view.dtype;
    if (!walk(pass, add_tangent, error))
        return false;
    float angle = rounded_number(dtype, torch_norm_end(&pass->norm));
    angle = rounded_number(dtype, angle + rounded_number(dtype, pass->multislerp->eps));
    pass->sphere->cosine = rounded_number(dtype, torch_cos(angle));
    pass->sphere->sine_share = rounded_number(dtype, rounded_number(dtype, torch_sin(angle)) / angle);
    return true;
}

static bool fill_sphere(struct pass *pass, struct error *error)
{
    const struct multislerp *multislerp = pass->multislerp;
    const struct dtype *dtype = multislerp->merged.view.dtype;
    if (!find_lengths(pass, error) || !walk(pass, add_mean, error))
        return false;
    float length = rounded_number(dtype, torch_norm_end(&pass->norm));
    pass->sphere->opposite = length < rounded_number(dtype, multislerp->eps);
    if (pass->sphere->opposite && multislerp->merged.n_models != 2)
        return error_set(error,
                         "multislerp: the weighted mean of the %zu models' directions is 0; change their weights",
                         multislerp->merged.n_models);
    pass->sphere->mean_length = length;
    return pass->sphere->opposite || (find_dots(pass, error) && find_tangent(pass, error));
}

static void *find_sphere(const void *context, struct error *error)
{
    const struct multislerp *multislerp = context;
    size_t n = multislerp->merged.n_models;
    struct sphere *sphere = finding_alloc(sizeof *sphere + n * sizeof *sphere->models);
    struct pass pass = {multislerp, sphere};
    pass.norms = memory_alloc(n * sizeof *pass.norms);
    pass.dots = memory_alloc(n * sizeof *pass.dots);
    bool good = fill_sphere(&pass, error);
    free(pass.norms);
    free(pass.dots);
    if (good)
        return sphere;
    finding_discard(sphere);
    return NULL;
}

static const float *compute(const struct merged *merged, struct merge_tile *tile, struct error *error)
{
    const struct multislerp *multislerp = (const struct multislerp *)merged;
    const struct sphere *sphere = finding_get(multislerp->sphere, find_sphere, multislerp, error);
    float *mean = tile->spare[0], *tangent = tile->spare[1];
    if (sphere == NULL)
        return NULL;
    if (sphere->opposite) {
        merge_subtract_base(merged, tile);
        rounded_one(&tile->in, MULTIPLY, tile->models[0], tile->n, multislerp->weights[0]);
        rounded_one(&tile->in, MULTIPLY, tile->models[1], tile->n, multislerp->weights[1]);
        mean = tile->models[0];
        rounded_each(&tile->in, ADD, mean, tile->n, tile->models[1]);
    } else {
        take_tangents(multislerp, sphere, tile, mean, tangent);
        rounded_one(&tile->in, MULTIPLY, mean, tile->n, sphere->cosine);
        rounded_one(&tile->in, MULTIPLY, tangent, tile->n, sphere->sine_share);
        rounded_each(&tile->in, ADD, mean, tile->n, tangent);
        rounded_one(&tile->in, MULTIPLY, mean, tile->n, sphere->radius);
    }
    if (tile->base != NULL)
        rounded_each(&tile->in, ADD, mean, tile->n, tile->base);
    return mean;
}

static bool multislerp_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return merge_read(view, first, count, out, compute, error);
}

static void multislerp_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    merge_depends_on(view, ((const struct multislerp *)view)->sphere, first, count, to);
}

static const float *weights_of(struct arena *arena, const struct merge_operands *operands)
{
    float *weights = arena_array(arena, operands->n_models, sizeof *weights);
    for (size_t i = 0; i < operands->n_models; i++)
        weights[i] = rounded_number(operands->dtype, operands->models[i].weight);
    float sum = rounded_number(operands->dtype, torch_sum_few(weights, operands->n_models));
    for (size_t i = 0; i < operands->n_models && operands->normalize; i++)
        weights[i] = rounded_number(operands->dtype, weights[i] / sum);
    return weights;
}

const struct view *merge_multislerp(struct arena *arena, const struct merge_operands *operands)
{
    static const struct view_op op = {
        .name = "multislerp", .cost = 6000, .read = multislerp_read, .depends = multislerp_depends};
    if (operands->n_models == 1)
        return view_convert(arena, operands->models[0].view, operands->dtype);
    struct multislerp *multislerp = arena_alloc(arena, sizeof *multislerp);
    merge_init(&multislerp->merged, arena, &op, operands, true);
    multislerp->weights = weights_of(arena, operands);
    multislerp->eps = operands->eps;
    multislerp->sphere = finding_new(arena, operands->findings);
    return &multislerp->merged.view;
}
