/* sce: differences from the base, of elements that vary most among the models, weighted by their mean square, without
 * those of the other sign than the sum. */
#include "quant/arithmetic/torch_sum.h"
#include "quant/merge/cut.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sce {
    struct merged merged;
    double share; /* of the elements that vary; 1: all are taken */
    struct finding *facts;
};

struct facts {
    bool none;      /* no element is taken */
    struct cut cut; /* of those that are, unless all are */
    float weights[];
};

/* The words of the cut follow the weights. */
static size_t words_at(size_t n_models)
{
    size_t end = sizeof(struct facts) + n_models * sizeof(float);
    return (end + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
}

/* Facts with the words of their cut. */
struct known {
    const struct facts *facts;
    const uint64_t *words;
};

/* Returns the variance of an element among the models, in F64 as torch has it. */
static float variance_of(float *const *models, size_t n_models, size_t i)
{
    double mean = 0, squares = 0;
    for (size_t j = 0; j < n_models; j++) {
        double before = (double)models[j][i] - mean;
        mean += before / (double)(j + 1);
        squares += before * ((double)models[j][i] - mean);
    }
    return (float)(squares / (double)n_models);
}

static void find_variances(const struct merged *merged, struct merge_tile *tile, float *variances)
{
    for (size_t i = 0; i < tile->n; i++)
        variances[i] = variance_of(tile->models, merged->n_models, i);
    rounded_values(&tile->in, variances, tile->n);
}

static void find_keys(const void *context, struct merge_tile *tile, uint32_t *keys)
{
    const struct merged *merged = context;
    float *variances = tile->spare[2];
    merge_subtract_base(merged, tile);
    find_variances(merged, tile, variances);
    for (size_t i = 0; i < tile->n; i++)
        keys[i] = ~key_of(variances[i]);
}

/* Multiplies elements that are not taken by 0. */
static void take_elements(const struct sce *sce, const struct known *known, struct merge_tile *tile)
{
    uint32_t *keys = (uint32_t *)(void *)tile->spare[0];
    bool *taken = (bool *)(void *)tile->spare[1];
    merge_subtract_base(&sce->merged, tile);
    if (sce->share >= 1)
        return;
    find_variances(&sce->merged, tile, tile->spare[2]);
    for (size_t i = 0; i < tile->n; i++)
        keys[i] = ~key_of(tile->spare[2][i]);
    cut_look_up(&known->facts->cut, known->words, tile, keys, taken);
    for (size_t j = 0; j < sce->merged.n_models; j++)
        for (size_t i = 0; i < tile->n; i++)
            tile->models[j][i] *= taken[i] && !known->facts->none ? 1.0f : 0.0f;
}

/* One walk. */
struct pass {
    const struct sce *sce;
    uint64_t n_varying;
    struct facts *facts;
    struct buffer words;
    struct torch_total *squares;
};

static bool count_varying(void *context, struct merge_tile *tile, struct error *error)
{
    struct pass *pass = context;
    merge_subtract_base(&pass->sce->merged, tile);
    find_variances(&pass->sce->merged, tile, tile->spare[0]);
    for (size_t i = 0; i < tile->n; i++)
        pass->n_varying += tile->spare[0][i] != 0;
    return true;
}

static bool add_squares(void *context, struct merge_tile *tile, struct error *error)
{
    struct pass *pass = context;
    const struct known known = {pass->facts, (const uint64_t *)(const void *)pass->words.bytes};
    take_elements(pass->sce, &known, tile);
    for (size_t j = 0; j < pass->sce->merged.n_models; j++) {
        rounded_each(&tile->in, MULTIPLY, tile->models[j], tile->n, tile->models[j]);
        torch_total_add(&pass->squares[j], tile->models[j], tile->n);
    }
    return true;
}

static bool walk(struct pass *pass, merge_visit_function *visit, struct error *error)
{
    const struct merged *merged = &pass->sce->merged;
    return merge_walk(merged, 0, merged->view.n_elements, visit, pass, error);
}

/* Finds which elements are taken: how many is a product in F32. */
static bool find_taken(struct pass *pass, struct error *error)
{
    const struct cut_source source = {&pass->sce->merged, find_keys, &pass->sce->merged};
    float share = (float)pass->sce->share;
    if (share > 0 && !walk(pass, count_varying, error))
        return false;
    float n = truncf((float)pass->n_varying * share);
    pass->facts->none = n < 1;
    return pass->facts->none || cut_find(&source, (uint64_t)n, std_top, &pass->words, &pass->facts->cut, error);
}

static bool find_weights(struct pass *pass, struct error *error)
{
    const struct view *view = &pass->sce->merged.view;
    size_t n = pass->sce->merged.n_models;
    float *weights = pass->facts->weights;
    for (size_t i = 0; i < n; i++)
        torch_total_begin(&pass->squares[i], &f32_dtype, view->n_elements);
    if (!walk(pass, add_squares, error))
        return false;
    for (size_t i = 0; i < n; i++)
        weights[i] = rounded_number(view->dtype, torch_total_end(&pass->squares[i]) / (float)view->n_elements);
    float sum = rounded_number(view->dtype, torch_sum_few(weights, n));
    bool negligible = fabs((double)sum) < 1e-6;
    for (size_t i = 0; i < n; i++)
        weights[i] = rounded_number(view->dtype, negligible ? 1 / (float)n : weights[i] / sum);
    return true;
}

static void *find_facts(const void *context, struct error *error)
{
    const struct sce *sce = context;
    size_t n = sce->merged.n_models;
    struct pass pass = {.sce = sce};
    void *finding = NULL;
    pass.facts = memory_alloc(words_at(n));
    pass.squares = memory_alloc(n * sizeof *pass.squares);
    memset(pass.facts, 0, words_at(n));
    if ((sce->share >= 1 || find_taken(&pass, error)) && find_weights(&pass, error))
        finding = finding_of(pass.facts, words_at(n), &pass.words);
    free(pass.squares);
    free(pass.facts);
    buffer_free(&pass.words);
    return finding;
}

/* Sets the weight where values have the sign of the sum, where 0 counts as positive, else 0 as in a product. */
static void weigh_agreeing(const float *restrict values, const float *restrict sums, float weight,
                           float *restrict weights, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int positive = sums[i] >= 0;
        weights[i] = weight * (float)((positive & (values[i] > 0)) | (!positive & (values[i] < 0)));
    }
}

static void raise_to(float *values, size_t n, float least)
{
    for (size_t i = 0; i < n; i++)
        values[i] = values[i] < least ? least : values[i];
}

static const float *compute(const struct merged *merged, struct merge_tile *tile, struct error *error)
{
    const struct sce *sce = (const struct sce *)merged;
    const struct facts *facts = finding_get(sce->facts, find_facts, sce, error);
    float *sums = tile->spare[0], *divisors = tile->spare[1];
    if (facts == NULL)
        return NULL;
    const void *words = (const unsigned char *)facts + words_at(merged->n_models);
    float **weights = merge_arrays_new(merged, tile);
    take_elements(sce, &(struct known){facts, words}, tile);
    merge_sum(merged, tile, tile->models, sums);
    for (size_t i = 0; i < merged->n_models; i++) {
        weigh_agreeing(tile->models[i], sums, facts->weights[i], weights[i], tile->n);
        rounded_each(&tile->in, MULTIPLY, tile->models[i], tile->n, weights[i]);
    }
    merge_sum(merged, tile, tile->models, sums);
    merge_sum(merged, tile, weights, divisors);
    free(weights);
    raise_to(divisors, tile->n, rounded_number(merged->view.dtype, 1e-6));
    rounded_each(&tile->in, DIVIDE, sums, tile->n, divisors);
    rounded_each(&tile->in, ADD, sums, tile->n, tile->base);
    return sums;
}

static bool sce_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return merge_read(view, first, count, out, compute, error);
}

static void sce_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    merge_depends_on(view, ((const struct sce *)view)->facts, first, count, to);
}

const struct view *merge_sce(struct arena *arena, const struct merge_operands *operands)
{
    static const struct view_op op = {.name = "sce", .cost = 6000, .read = sce_read, .depends = sce_depends};
    struct sce *sce = arena_alloc(arena, sizeof *sce);
    assert(operands->base != NULL);
    merge_init(&sce->merged, arena, &op, operands, true);
    sce->merged.step = MERGE_TILE;
    sce->share = operands->select_topk;
    sce->facts = finding_new(arena, operands->findings);
    return &sce->merged.view;
}
