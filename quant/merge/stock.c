/* model_stock: from the base towards the mean of the models, the further the less the angles between their differences
 * from it are. */
#include "quant/arithmetic/torch_sum.h"
#include "quant/merge/tiles.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct stock {
    struct merged merged;
    bool by_rows;
    struct finding *share; /* float: of the mean for the whole, unless by rows */
};

/* The reductions of one vector for each model: its norm, and dot products with the models before. */
struct angles {
    size_t n;
    struct torch_norm *norms;
    struct torch_total *dots; /* of models i > j: at i (i - 1) / 2 + j */
    float *lengths, *cosines, *product;
};

static size_t pairs_of(size_t n)
{
    return n * (n - 1) / 2;
}

static void angles_new(struct angles *angles, size_t n, size_t tile)
{
    angles->n = n;
    angles->norms = memory_alloc(n * sizeof *angles->norms);
    angles->dots = memory_alloc(pairs_of(n) * sizeof *angles->dots);
    angles->lengths = memory_alloc(n * sizeof *angles->lengths);
    angles->cosines = memory_alloc(pairs_of(n) * sizeof *angles->cosines);
    angles->product = memory_alloc(tile * sizeof *angles->product);
}

static void angles_free(struct angles *angles)
{
    free(angles->norms);
    free(angles->dots);
    free(angles->lengths);
    free(angles->cosines);
    free(angles->product);
}

static void angles_begin(struct angles *angles, const struct dtype *dtype, uint64_t n)
{
    for (size_t i = 0; i < angles->n; i++)
        torch_norm_begin(&angles->norms[i], dtype);
    for (size_t i = 0; i < pairs_of(angles->n); i++)
        torch_total_begin(&angles->dots[i], dtype, n);
}

/* Adds elements of the differences of all models. */
static void angles_add(struct angles *angles, const struct rounded *in, float *const *offsets, size_t first, size_t n)
{
    for (size_t i = 0; i < angles->n; i++) {
        torch_norm_add(&angles->norms[i], offsets[i] + first, n);
        for (size_t j = 0; j < i; j++) {
            memcpy(angles->product, offsets[i] + first, n * sizeof *angles->product);
            rounded_each(in, MULTIPLY, angles->product, n, offsets[j] + first);
            torch_total_add(&angles->dots[i * (i - 1) / 2 + j], angles->product, n);
        }
    }
}

static float cosine_of(const struct dtype *dtype, float dot, float a, float b)
{
    float least = rounded_number(dtype, 1e-6), product = rounded_number(dtype, a * b);
    float cosine = rounded_number(dtype, rounded_number(dtype, dot) / (product < least ? least : product));
    return cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
}

/* Returns the share of the mean. Pairs are in the order (0, 1), (0, 2) ..., (1, 2) .... */
static float angles_end(struct angles *angles, const struct dtype *dtype, uint64_t row, uint64_t n_rows)
{
    size_t n_pairs = pairs_of(angles->n), pair = 0;
    float *norms = angles->lengths, count = (float)angles->n;
    for (size_t i = 0; i < angles->n; i++)
        norms[i] = rounded_number(dtype, torch_norm_end(&angles->norms[i]));
    for (size_t j = 0; j < angles->n; j++)
        for (size_t i = j + 1; i < angles->n; i++)
            angles->cosines[pair++] =
                cosine_of(dtype, torch_total_end(&angles->dots[i * (i - 1) / 2 + j]), norms[j], norms[i]);
    float sum =
        n_rows == 1 ? torch_sum_few(angles->cosines, n_pairs) : torch_sum_column(angles->cosines, n_pairs, row, n_rows);
    float cosine = rounded_number(dtype, sum / (float)n_pairs);
    float divisor = rounded_number(dtype, 1 + rounded_number(dtype, (count - 1) * cosine));
    if (fabsf(divisor) < rounded_number(dtype, 1e-6))
        return 0;
    return rounded_number(dtype, rounded_number(dtype, count * cosine) / divisor);
}

/* A walk over the whole. */
struct pass {
    const struct merged *merged;
    struct angles angles;
};

static bool add_tile(void *context, struct merge_tile *tile, struct error *error)
{
    struct pass *pass = context;
    merge_subtract_base(pass->merged, tile);
    angles_add(&pass->angles, &tile->in, tile->models, 0, tile->n);
    return true;
}

static void *find_share(const void *context, struct error *error)
{
    const struct stock *stock = context;
    const struct view *view = &stock->merged.view;
    struct pass pass = {.merged = &stock->merged};
    float *share = finding_alloc(sizeof *share);
    angles_new(&pass.angles, stock->merged.n_models, MERGE_TILE);
    angles_begin(&pass.angles, view->dtype, view->n_elements);
    bool good = merge_walk(pass.merged, 0, view->n_elements, add_tile, &pass, error);
    if (good)
        *share = angles_end(&pass.angles, view->dtype, 0, 1);
    angles_free(&pass.angles);
    if (good)
        return share;
    finding_discard(share);
    return NULL;
}

/* Puts the mean of the models into `mean`. */
static void take_mean(const struct merged *merged, struct merge_tile *tile, float *mean)
{
    memset(mean, 0, tile->n * sizeof *mean);
    for (size_t i = 0; i < merged->n_models; i++)
        rounded_each(&tile->in, ADD, mean, tile->n, tile->models[i]);
    rounded_one(&tile->in, DIVIDE, mean, tile->n, (float)merged->n_models);
}

/* Moves a vector from the base, in place, towards the mean. */
static void mix(const struct rounded *in, float *base, float *mean, size_t n, float share)
{
    rounded_one(in, MULTIPLY, mean, n, share);
    rounded_one(in, MULTIPLY, base, n, rounded_number(in->dtype, 1 - share));
    rounded_each(in, ADD, base, n, mean);
}

static void mix_rows(const struct stock *stock, struct merge_tile *tile, float *mean)
{
    const struct view *view = &stock->merged.view;
    size_t row = (size_t)view_row_elements(view);
    struct angles angles;
    angles_new(&angles, stock->merged.n_models, row);
    merge_subtract_base(&stock->merged, tile);
    for (size_t i = 0; i < tile->n; i += row) {
        angles_begin(&angles, view->dtype, row);
        angles_add(&angles, &tile->in, tile->models, i, row);
        float share = angles_end(&angles, view->dtype, (tile->first + i) / row, view->n_elements / row);
        mix(&tile->in, tile->base + i, mean + i, row, share);
    }
    angles_free(&angles);
}

static const float *compute(const struct merged *merged, struct merge_tile *tile, struct error *error)
{
    const struct stock *stock = (const struct stock *)merged;
    const float *share = NULL;
    if (!stock->by_rows && (share = finding_get(stock->share, find_share, stock, error)) == NULL)
        return NULL;
    take_mean(merged, tile, tile->spare[0]);
    if (share != NULL)
        mix(&tile->in, tile->base, tile->spare[0], tile->n, *share);
    else
        mix_rows(stock, tile, tile->spare[0]);
    return tile->base;
}

static bool stock_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return merge_read(view, first, count, out, compute, error);
}

static void stock_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct stock *stock = (const struct stock *)view;
    if (stock->by_rows)
        merge_depends(view, first, count, to);
    else
        merge_depends_on(view, stock->share, first, count, to);
}

const struct view *merge_model_stock(struct arena *arena, const struct merge_operands *operands)
{
    static const struct view_op op = {
        .name = "model stock", .cost = 4000, .read = stock_read, .depends = stock_depends};
    struct stock *stock = arena_alloc(arena, sizeof *stock);
    assert(operands->base != NULL && operands->n_models >= 2);
    merge_init(&stock->merged, arena, &op, operands, true);
    stock->by_rows = operands->filter_wise;
    if (stock->by_rows)
        stock->merged.step = merge_step_of_rows(&stock->merged.view);
    stock->share = finding_new(arena, operands->findings);
    return &stock->merged.view;
}
