/* karcher: the mean of models on a sphere, found step by step. */
#include "quant/arithmetic/torch_sum.h"
#include "quant/merge/tiles.h"
#include "quant/views/convert.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct karcher {
    struct merged merged;
    double tol;
    unsigned max_iter;
    struct finding *search;
};

/* A step of the mean along the sphere. */
struct step {
    float tangent_length, cosine, sine;
    float length; /* to divide by after the step; 0: none */
    struct {
        float dot, factor; /* a factor of 0: the model is skipped */
    } models[];
};

/* What is known of the steps so far. Models of no length do not count. */
struct search {
    size_t n_models;
    float alpha;       /* of each model that counts */
    float mean_length; /* of the first mean; 0: not divided */
    float radius;
    bool any, first_is_mean;
    unsigned n_steps;
    float lengths[]; /* of each model; 0: it does not count. The steps follow */
};

static size_t step_size(size_t n_models)
{
    struct step *step;
    return sizeof *step + n_models * sizeof *step->models;
}

static size_t search_size(size_t n_models, unsigned n_steps)
{
    return sizeof(struct search) + n_models * sizeof(float) + n_steps * step_size(n_models);
}

static const struct step *step_of(const struct search *search, unsigned i)
{
    return (const void *)((const unsigned char *)search + search_size(search->n_models, i));
}

/* Replaces the models that count by vectors of length 1, and puts their mean into `mean`. */
static void begin_mean(const struct search *search, struct merge_tile *tile, float *mean)
{
    float *term = tile->spare[2], *first = NULL;
    memset(mean, 0, tile->n * sizeof *mean);
    for (size_t i = 0; i < search->n_models; i++) {
        if (search->lengths[i] == 0)
            continue;
        rounded_one(&tile->in, DIVIDE, tile->models[i], tile->n, search->lengths[i]);
        memcpy(term, tile->models[i], tile->n * sizeof *term);
        rounded_one(&tile->in, MULTIPLY, term, tile->n, search->alpha);
        rounded_each(&tile->in, ADD, mean, tile->n, term);
        first = first == NULL ? tile->models[i] : first;
    }
    if (search->first_is_mean)
        memcpy(mean, first, tile->n * sizeof *mean);
    else if (search->mean_length != 0)
        rounded_one(&tile->in, DIVIDE, mean, tile->n, search->mean_length);
}

/* Puts the sum of the directions to the models into `tangent`. */
static void take_tangent(const struct search *search, const struct step *step, struct merge_tile *tile,
                         const float *mean, float *tangent)
{
    float *term = tile->spare[2], *projection = memory_alloc(tile->n * sizeof *projection);
    memset(tangent, 0, tile->n * sizeof *tangent);
    for (size_t i = 0; i < search->n_models; i++) {
        if (search->lengths[i] == 0 || step->models[i].factor == 0)
            continue;
        memcpy(term, tile->models[i], tile->n * sizeof *term);
        memcpy(projection, mean, tile->n * sizeof *projection);
        rounded_one(&tile->in, MULTIPLY, projection, tile->n, step->models[i].dot);
        rounded_each(&tile->in, SUBTRACT, term, tile->n, projection);
        rounded_one(&tile->in, MULTIPLY, term, tile->n, step->models[i].factor);
        rounded_each(&tile->in, ADD, tangent, tile->n, term);
    }
    free(projection);
}

static void move_mean(const struct search *search, const struct step *step, struct merge_tile *tile, float *mean)
{
    float *tangent = tile->spare[1];
    take_tangent(search, step, tile, mean, tangent);
    rounded_one(&tile->in, MULTIPLY, mean, tile->n, step->cosine);
    rounded_one(&tile->in, DIVIDE, tangent, tile->n, step->tangent_length);
    rounded_one(&tile->in, MULTIPLY, tangent, tile->n, step->sine);
    rounded_each(&tile->in, ADD, mean, tile->n, tangent);
    if (step->length != 0)
        rounded_one(&tile->in, DIVIDE, mean, tile->n, step->length);
}

/* Puts the mean after all steps so far into `mean`. */
static void take_mean(const struct search *search, struct merge_tile *tile, float *mean)
{
    begin_mean(search, tile, mean);
    for (unsigned i = 0; i < search->n_steps; i++)
        move_mean(search, step_of(search, i), tile, mean);
}

/* One walk. */
struct pass {
    const struct karcher *karcher;
    struct search *search;
    const struct step *step; /* the next one, which does not count yet; NULL: none */
    struct torch_norm norm;
    struct torch_norm *norms;
    double *dots;
};

static bool add_lengths(void *context, struct merge_tile *tile, struct error *error)
{
    struct pass *pass = context;
    for (size_t i = 0; i < pass->search->n_models; i++)
        torch_norm_add(&pass->norms[i], tile->models[i], tile->n);
    return true;
}

static bool add_mean(void *context, struct merge_tile *tile, struct error *error)
{
    struct pass *pass = context;
    take_mean(pass->search, tile, tile->spare[0]);
    if (pass->step != NULL)
        move_mean(pass->search, pass->step, tile, tile->spare[0]);
    torch_norm_add(&pass->norm, tile->spare[0], tile->n);
    return true;
}

static bool add_dots(void *context, struct merge_tile *tile, struct error *error)
{
    struct pass *pass = context;
    const float *mean = tile->spare[0];
    take_mean(pass->search, tile, tile->spare[0]);
    for (size_t j = 0; j < pass->search->n_models; j++)
        for (size_t i = 0; i < tile->n; i++)
            pass->dots[j] += (double)mean[i] * (double)tile->models[j][i];
    return true;
}

static bool add_tangent(void *context, struct merge_tile *tile, struct error *error)
{
    struct pass *pass = context;
    take_mean(pass->search, tile, tile->spare[0]);
    take_tangent(pass->search, pass->step, tile, tile->spare[0], tile->spare[1]);
    torch_norm_add(&pass->norm, tile->spare[1], tile->n);
    return true;
}

/* Walks over the tensor; *ret_norm is that of what the visits add to it. */
static bool walk(struct pass *pass, merge_visit_function *visit, float *ret_norm, struct error *error)
{
    const struct merged *merged = &pass->karcher->merged;
    torch_norm_begin(&pass->norm, &f32_dtype);
    bool good = merge_walk(merged, 0, merged->view.n_elements, visit, pass, error);
    if (good)
        *ret_norm = torch_norm_end(&pass->norm);
    return good;
}

/* Finds the lengths of the models, and of their first mean. */
static bool find_start(struct pass *pass, struct error *error)
{
    struct search *search = pass->search;
    size_t n = search->n_models, n_valid = 0;
    const double share = 1.0 / (double)n, tol = pass->karcher->tol;
    double shares = 0;
    float none;
    for (size_t i = 0; i < n; i++)
        torch_norm_begin(&pass->norms[i], &f32_dtype);
    if (!walk(pass, add_lengths, &none, error))
        return false;
    for (size_t i = 0; i < n; i++) {
        float length = torch_norm_end(&pass->norms[i]), part = (float)share * length;
        search->radius += part;
        search->lengths[i] = (double)length > tol ? length : 0;
        shares += search->lengths[i] != 0 ? share : 0;
        n_valid += search->lengths[i] != 0;
    }
    search->any = n_valid > 0;
    if (!search->any)
        return true;
    search->alpha = (float)(share / shares);
    float length;
    if (!walk(pass, add_mean, &length, error))
        return false;
    search->first_is_mean = (double)length < tol;
    search->mean_length = search->first_is_mean ? 0 : length;
    return true;
}

static void find_directions(struct pass *pass, struct step *step)
{
    const struct dtype *dtype = pass->karcher->merged.view.dtype;
    for (size_t i = 0; i < pass->search->n_models; i++) {
        float dot = rounded_number(dtype, pass->dots[i]);
        dot = dot > 1 ? 1 : dot < -1 ? -1 : dot;
        float angle = rounded_number(dtype, torch_acos(dot));
        float factor = rounded_number(dtype, angle / rounded_number(dtype, torch_sin(angle)));
        bool near = (double)angle < pass->karcher->tol;
        step->models[i].dot = dot;
        step->models[i].factor = near ? 0 : rounded_number(dtype, factor * pass->search->alpha);
    }
}

/* Finds the next step; *ret_done: the mean stays where it is. */
static bool find_step(struct pass *pass, struct step *step, bool *ret_done, struct error *error)
{
    const struct karcher *karcher = pass->karcher;
    const struct dtype *dtype = karcher->merged.view.dtype;
    float length = 0;
    memset(pass->dots, 0, pass->search->n_models * sizeof *pass->dots);
    if (!walk(pass, add_dots, &length, error))
        return false;
    find_directions(pass, step);
    pass->step = step;
    if (!walk(pass, add_tangent, &step->tangent_length, error))
        return false;
    *ret_done = (double)step->tangent_length < karcher->tol;
    step->cosine = rounded_number(dtype, torch_cos(step->tangent_length));
    step->sine = rounded_number(dtype, torch_sin(step->tangent_length));
    step->length = 0;
    if (!*ret_done && !walk(pass, add_mean, &length, error))
        return false;
    step->length = (double)length > karcher->tol ? length : 0;
    pass->step = NULL;
    return true;
}

static bool find_steps(struct pass *pass, struct error *error)
{
    struct search *search = pass->search;
    bool good = find_start(pass, error), done = !search->any;
    while (good && !done && search->n_steps < pass->karcher->max_iter) {
        struct step *step = (void *)((unsigned char *)search + search_size(search->n_models, search->n_steps));
        good = find_step(pass, step, &done, error);
        search->n_steps += good && !done;
    }
    return good;
}

static void *find_search(const void *context, struct error *error)
{
    const struct karcher *karcher = context;
    size_t n = karcher->merged.n_models;
    struct search *search = memory_alloc(search_size(n, karcher->max_iter)), *finding = NULL;
    *search = (struct search){.n_models = n};
    struct pass pass = {karcher, search};
    pass.norms = memory_alloc(n * sizeof *pass.norms);
    pass.dots = memory_alloc(n * sizeof *pass.dots);
    if (find_steps(&pass, error))
        finding = finding_of(search, search_size(n, search->n_steps), NULL);
    free(pass.norms);
    free(pass.dots);
    free(search);
    return finding;
}

static const float *compute(const struct merged *merged, struct merge_tile *tile, struct error *error)
{
    const struct karcher *karcher = (const struct karcher *)merged;
    const struct search *search = finding_get(karcher->search, find_search, karcher, error);
    float *mean = tile->spare[0];
    if (search == NULL)
        return NULL;
    if (!search->any) {
        memset(mean, 0, tile->n * sizeof *mean);
        return mean;
    }
    take_mean(search, tile, mean);
    rounded_one(&tile->in, MULTIPLY, mean, tile->n, rounded_number(merged->view.dtype, search->radius));
    return mean;
}

static bool karcher_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return merge_read(view, first, count, out, compute, error);
}

static void karcher_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    merge_depends_on(view, ((const struct karcher *)view)->search, first, count, to);
}

const struct view *merge_karcher(struct arena *arena, const struct merge_operands *operands)
{
    static const struct view_op op = {
        .name = "karcher", .cost = 60000, .read = karcher_read, .depends = karcher_depends};
    assert(operands->dtype != &f32_dtype && operands->max_iter <= MERGE_MAX_ITER);
    if (operands->n_models == 1)
        return view_convert(arena, operands->models[0].view, operands->dtype);
    struct karcher *karcher = arena_alloc(arena, sizeof *karcher);
    merge_init(&karcher->merged, arena, &op, operands, false);
    karcher->tol = operands->tol;
    karcher->max_iter = operands->max_iter;
    karcher->search = finding_new(arena, operands->findings);
    return &karcher->merged.view;
}
