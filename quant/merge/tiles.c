#include "quant/merge/tiles.h"

#include "quant/arithmetic/torch_sum.h"
#include "quant/views/convert.h"
#include "quant/views/dependencies.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool same_shape(const struct view *a, const struct view *b)
{
    bool same = a->rank == b->rank;
    for (unsigned i = 0; i < a->rank && same; i++)
        same = a->shape[i] == b->shape[i];
    return same;
}

void merge_init(struct merged *merged, struct arena *arena, const struct view_op *op,
                const struct merge_operands *operands, bool with_base)
{
    const struct view *first = operands->models[0].view;
    const struct view **models = arena_array(arena, operands->n_models, sizeof *models);
    for (size_t i = 0; i < operands->n_models; i++) {
        models[i] = operands->models[i].view;
        assert(same_shape(models[i], first));
    }
    view_init_shared(&merged->view, op, operands->dtype, first->rank, first->shape);
    merged->models = models;
    merged->n_models = operands->n_models;
    merged->base = with_base ? operands->base : NULL;
    assert(merged->base == NULL || same_shape(merged->base, first));
    merged->view.scattered = merged->base != NULL && merged->base->scattered;
    for (size_t i = 0; i < operands->n_models; i++)
        merged->view.scattered |= models[i]->scattered;
}

/* Reads the elements of one input, rounded to the work dtype. */
static bool read_input(const struct rounded *in, const struct view *view, uint64_t first, size_t n, float *values,
                       struct error *error)
{
    bool good = convert_values(view, first, n, values, error);
    if (good && view->dtype != in->dtype)
        rounded_values(in, values, n);
    return good;
}

static bool read_inputs(const struct merged *merged, const struct merge_tile *tile, struct error *error)
{
    bool good = merged->base == NULL || read_input(&tile->in, merged->base, tile->first, tile->n, tile->base, error);
    for (size_t i = 0; i < merged->n_models && good; i++)
        good = read_input(&tile->in, merged->models[i], tile->first, tile->n, tile->models[i], error);
    return good;
}

/* Widens a range to whole tiles. */
static void widen(const struct merged *merged, uint64_t *first, uint64_t *count)
{
    uint64_t n = merged->view.n_elements, end = *first + *count;
    if (merged->step == 0)
        return;
    end += (merged->step - end % merged->step) % merged->step;
    end = end < n ? end : n;
    *first -= *first % merged->step;
    *count = end - *first;
}

bool merge_walk(const struct merged *merged, uint64_t first, uint64_t count, merge_visit_function *visit, void *context,
                struct error *error)
{
    widen(merged, &first, &count);
    uint64_t step = merged->step != 0 ? merged->step : MERGE_TILE;
    size_t room = (size_t)(count < step ? count : step);
    float *values = memory_alloc((merged->n_models + 1 + MERGE_SPARES) * room * sizeof *values);
    float **models = memory_alloc(merged->n_models * sizeof *models);
    struct merge_tile tile = {.in = rounded_in(merged->view.dtype), .models = models};
    bool good = true;
    for (size_t i = 0; i < MERGE_SPARES; i++)
        tile.spare[i] = values + i * room;
    tile.base = merged->base != NULL ? values + MERGE_SPARES * room : NULL;
    for (size_t i = 0; i < merged->n_models; i++)
        models[i] = values + (MERGE_SPARES + 1 + i) * room;
    for (uint64_t done = 0; done < count && good; done += tile.n) {
        tile.first = first + done;
        tile.n = count - done < room ? (size_t)(count - done) : room;
        good = read_inputs(merged, &tile, error) && visit(context, &tile, error);
    }
    free(models);
    free(values);
    return good;
}

struct reading {
    const struct merged *merged;
    merge_tile_function *compute;
    uint64_t first, end;
    unsigned char *out;
};

static bool read_tile(void *context, struct merge_tile *tile, struct error *error)
{
    const struct reading *reading = context;
    const struct dtype *dtype = reading->merged->view.dtype;
    const float *values = reading->compute(reading->merged, tile, error);
    uint64_t first = tile->first > reading->first ? tile->first : reading->first, end = tile->first + tile->n;
    if (values != NULL)
        dtype_kernels(dtype).encode(values + (first - tile->first),
                                    reading->out + (first - reading->first) * dtype->block_bytes,
                                    (end < reading->end ? end : reading->end) - first);
    return values != NULL;
}

bool merge_read(const struct view *view, uint64_t first, uint64_t count, void *out, merge_tile_function *compute,
                struct error *error)
{
    struct reading reading = {(const struct merged *)view, compute, first, first + count, out};
    return merge_walk(reading.merged, first, count, read_tile, &reading, error);
}

void merge_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct merged *merged = (const struct merged *)view;
    widen(merged, &first, &count);
    if (merged->base != NULL)
        convert_depends(merged->base, encoding_of(&f32_dtype), first, count, to);
    for (size_t i = 0; i < merged->n_models; i++)
        convert_depends(merged->models[i], encoding_of(&f32_dtype), first, count, to);
}

void merge_depends_on(const struct view *view, struct finding *finding, uint64_t first, uint64_t count,
                      struct dependencies *to)
{
    bool known = !to->as_at_first && finding_known(finding);
    merge_depends(view, known ? first : 0, known ? count : view->n_elements, to);
}

uint64_t merge_step_of_rows(const struct view *view)
{
    uint64_t row = view_row_elements(view);
    return row >= MERGE_TILE ? row : row == 0 ? 1 : (MERGE_TILE + row - 1) / row * row;
}

void merge_subtract_base(const struct merged *merged, struct merge_tile *tile)
{
    for (size_t i = 0; i < merged->n_models && tile->base != NULL; i++)
        rounded_each(&tile->in, SUBTRACT, tile->models[i], tile->n, tile->base);
}

/* Sums of columns that torch sums in groups of rows. */
static void sum_grouped(const struct rounded *in, float *const *terms, size_t n_terms, size_t n, float *sums)
{
    float *group = n_terms > TORCH_SUM_GROUP ? memory_alloc(n * sizeof *group) : sums;
    memset(sums, 0, n * sizeof *sums);
    for (size_t i = 0; i < n_terms; i++) {
        if (i % TORCH_SUM_GROUP == 0)
            memset(group, 0, n * sizeof *group);
        in->kernels->with_each(ADD, group, n, terms[i]);
        if (group != sums && (i % TORCH_SUM_GROUP == TORCH_SUM_GROUP - 1 || i == n_terms - 1))
            in->kernels->with_each(ADD, sums, n, group);
    }
    if (group != sums)
        free(group);
}

float **merge_arrays_new(const struct merged *merged, const struct merge_tile *tile)
{
    size_t n = merged->n_models;
    float **arrays = memory_alloc(n * (sizeof *arrays + tile->n * sizeof **arrays)), *values = (float *)(arrays + n);
    for (size_t i = 0; i < n; i++)
        arrays[i] = values + i * tile->n;
    return arrays;
}

void merge_sum(const struct merged *merged, const struct merge_tile *tile, float *const *terms, float *sums)
{
    uint64_t n_grouped = torch_sum_grouped_columns(merged->view.n_elements);
    n_grouped = n_grouped > tile->first ? n_grouped - tile->first : 0;
    float *column = memory_alloc(merged->n_models * sizeof *column);
    sum_grouped(&tile->in, terms, merged->n_models, tile->n, sums);
    for (size_t i = n_grouped < tile->n ? (size_t)n_grouped : tile->n; i < tile->n; i++) {
        for (size_t j = 0; j < merged->n_models; j++)
            column[j] = terms[j][i];
        sums[i] = torch_sum_short(column, merged->n_models);
    }
    free(column);
    rounded_values(&tile->in, sums, tile->n);
}
