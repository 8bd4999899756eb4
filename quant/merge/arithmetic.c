/* The family of task arithmetic: weighted differences from the base are thinned out, added, and added to the base. */
#include "quant/arithmetic/torch_sum.h"
#include "quant/merge/cut.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct arithmetic {
    struct merged merged;
    bool signs, normalize;
    float divisor; /* without signs */
    float lambda;
    const float *weights;
    const struct thinning *thinnings; /* of each model; MERGE_DENSE: it is kept whole. NULL: all are */
    struct finding *facts;            /* struct facts; NULL: none are needed */
};

/* Finds out about the differences of all models: facts of each, then the words of their cuts. */
static void *find_facts(const void *context, struct error *error)
{
    const struct arithmetic *arithmetic = context;
    size_t n = arithmetic->merged.n_models, length = n * sizeof(struct thinning_facts);
    struct thinning_facts *models = memory_alloc(length);
    struct buffer words = {0};
    bool good = true;
    memset(models, 0, length);
    for (size_t i = 0; i < n && good; i++) {
        struct merged one = arithmetic->merged;
        one.models += i;
        one.n_models = 1;
        if (arithmetic->thinnings[i].sparsifier != MERGE_DENSE)
            good = thin_find_facts(&arithmetic->thinnings[i], &one, &words, &models[i], error);
    }
    void *finding = good ? finding_of(models, length, &words) : NULL;
    free(models);
    buffer_free(&words);
    return finding;
}

static void weigh(const struct arithmetic *arithmetic, struct merge_tile *tile)
{
    for (size_t i = 0; i < arithmetic->merged.n_models; i++)
        rounded_one(&tile->in, MULTIPLY, tile->models[i], tile->n, arithmetic->weights[i]);
}

/* Keeps the values of the sign that the sum has, where 0 counts as positive. The others become 0 as in a product:
 * infinity becomes NaN. Without branches, which nothing could predict. */
static void keep_agreeing(float *restrict values, const float *restrict sums, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int positive = sums[i] >= 0;
        values[i] *= (float)((positive & (values[i] > 0)) | (!positive & (values[i] < 0)));
    }
}

static void replace_kept(float *values, float weight, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = values[i] != 0 ? weight : 0;
}

static void replace_zeros(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = values[i] == 0 ? 1 : values[i];
}

/* Returns the sum of the values that have the sign of the sum of all. */
static float *sum_agreeing(const struct arithmetic *arithmetic, struct merge_tile *tile)
{
    const struct merged *merged = &arithmetic->merged;
    float *sums = tile->spare[0], *others = tile->spare[1];
    merge_sum(merged, tile, tile->models, others);
    for (size_t i = 0; i < merged->n_models; i++)
        keep_agreeing(tile->models[i], others, tile->n);
    merge_sum(merged, tile, tile->models, sums);
    if (!arithmetic->normalize)
        return sums;
    for (size_t i = 0; i < merged->n_models; i++)
        replace_kept(tile->models[i], arithmetic->weights[i], tile->n);
    merge_sum(merged, tile, tile->models, others);
    replace_zeros(others, tile->n);
    rounded_each(&tile->in, DIVIDE, sums, tile->n, others);
    return sums;
}

static float *sum_all(const struct arithmetic *arithmetic, struct merge_tile *tile)
{
    float *sums = tile->spare[0];
    merge_sum(&arithmetic->merged, tile, tile->models, sums);
    if (arithmetic->normalize)
        rounded_one(&tile->in, DIVIDE, sums, tile->n, arithmetic->divisor);
    return sums;
}

/* Thins out the differences of all models. */
static bool thin(const struct arithmetic *arithmetic, struct merge_tile *tile, struct error *error)
{
    static const struct thinning_facts none;
    const struct thinning_facts *facts = NULL;
    size_t n = arithmetic->merged.n_models;
    if (arithmetic->facts != NULL && (facts = finding_get(arithmetic->facts, find_facts, arithmetic, error)) == NULL)
        return false;
    for (size_t i = 0; i < n && arithmetic->thinnings != NULL; i++) {
        struct thinning_known known = {&none, NULL};
        if (facts != NULL)
            known = (struct thinning_known){&facts[i], (const uint64_t *)(const void *)(facts + n)};
        if (arithmetic->thinnings[i].sparsifier != MERGE_DENSE)
            thin_tile(&arithmetic->thinnings[i], &known, &arithmetic->merged.view, tile, tile->models[i]);
    }
    return true;
}

static const float *compute(const struct merged *merged, struct merge_tile *tile, struct error *error)
{
    const struct arithmetic *arithmetic = (const struct arithmetic *)merged;
    merge_subtract_base(merged, tile);
    if (!thin(arithmetic, tile, error))
        return NULL;
    weigh(arithmetic, tile);
    float *sums = arithmetic->signs ? sum_agreeing(arithmetic, tile) : sum_all(arithmetic, tile);
    if (arithmetic->lambda != 1)
        rounded_one(&tile->in, MULTIPLY, sums, tile->n, arithmetic->lambda);
    rounded_each(&tile->in, ADD, tile->base, tile->n, sums);
    return tile->base;
}

static bool arithmetic_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return merge_read(view, first, count, out, compute, error);
}

static void arithmetic_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct arithmetic *arithmetic = (const struct arithmetic *)view;
    if (arithmetic->facts != NULL)
        merge_depends_on(view, arithmetic->facts, first, count, to);
    else
        merge_depends(view, first, count, to);
}

static const float *rounded_weights(struct arena *arena, const struct merge_operands *operands)
{
    float *weights = arena_array(arena, operands->n_models, sizeof *weights);
    for (size_t i = 0; i < operands->n_models; i++)
        weights[i] = rounded_number(operands->dtype, operands->models[i].weight);
    return weights;
}

uint64_t merge_words(const struct merge_operands *operands)
{
    uint64_t n = 0;
    for (size_t i = 0; i < operands->n_models; i++)
        if (thin_draws(operands->sparsifier, operands->models[i].density))
            n += operands->models[i].view->n_elements;
    return n;
}

static bool is_thinned(const struct merge_operands *operands)
{
    bool any = false;
    for (size_t i = 0; i < operands->n_models; i++)
        any |= operands->models[i].density < 1;
    return any && operands->sparsifier != MERGE_DENSE;
}

/* Plans how each model is thinned out, if any is. */
static void plan_thinning(struct arithmetic *arithmetic, struct arena *arena, const struct merge_operands *operands)
{
    bool facts = false;
    if (!is_thinned(operands))
        return;
    struct thinning *thinnings = arena_array(arena, operands->n_models, sizeof *thinnings);
    uint64_t word = operands->first_word;
    for (size_t i = 0; i < operands->n_models; i++) {
        const struct merge_model *model = &operands->models[i];
        bool outliers = operands->sparsifier == MERGE_MAGNITUDE_OUTLIERS;
        thinnings[i] = (struct thinning){.density = model->density,
                                         .extra = outliers ? model->gamma : model->epsilon,
                                         .random = operands->random,
                                         .first_word = word};
        if (model->density >= 1)
            continue;
        thinnings[i].sparsifier = operands->sparsifier;
        thinnings[i].rescale = operands->rescale;
        facts |= thin_needs_facts(&thinnings[i]);
        word += thin_draws(operands->sparsifier, model->density) ? model->view->n_elements : 0;
    }
    arithmetic->thinnings = thinnings;
    arithmetic->merged.step = thin_step(operands->sparsifier, &arithmetic->merged.view);
    if (facts)
        arithmetic->facts = finding_new(arena, operands->findings);
}

const struct view *merge_task_arithmetic(struct arena *arena, const struct merge_operands *operands)
{
    static const struct view_op op = {
        .name = "task arithmetic", .cost = 3000, .read = arithmetic_read, .depends = arithmetic_depends};
    struct arithmetic *arithmetic = arena_alloc(arena, sizeof *arithmetic);
    assert(operands->base != NULL);
    merge_init(&arithmetic->merged, arena, &op, operands, true);
    arithmetic->weights = rounded_weights(arena, operands);
    arithmetic->signs = operands->signs;
    arithmetic->normalize = operands->normalize;
    arithmetic->lambda = (float)operands->lambda;
    arithmetic->divisor = rounded_number(operands->dtype, torch_sum_few(arithmetic->weights, operands->n_models));
    if (fabsf(arithmetic->divisor) < rounded_number(operands->dtype, 1e-8))
        arithmetic->divisor = 1;
    plan_thinning(arithmetic, arena, operands);
    return &arithmetic->merged.view;
}
