#include "quant/merge_tiles.h"

#include "quant/convert.h"

#include <assert.h>
#include <stdlib.h>

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
    for (size_t i = 0; i < operands->n_models; i++)
        merged->view.scattered |= models[i]->scattered;
}

/* Reads the elements of one input, rounded to the work dtype. */
static bool read_input(const struct rounded *in, const struct view *view, uint64_t first, size_t n, float *values,
                       struct error *error)
{
    bool good = convert_read(view, encoding_of(&f32_dtype), first, n, values, error);
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

bool merge_read(const struct view *view, uint64_t first, uint64_t count, void *out, merge_tile_function *compute,
                struct error *error)
{
    const struct merged *merged = (const struct merged *)view;
    size_t room = count < MERGE_TILE ? (size_t)count : MERGE_TILE;
    float *values = memory_alloc((merged->n_models + 2) * room * sizeof *values);
    float **models = memory_alloc(merged->n_models * sizeof *models);
    struct merge_tile tile = {.in = rounded_in(view->dtype), .models = models, .result = values};
    unsigned char *to = out;
    bool good = true;
    tile.base = merged->base != NULL ? values + room : NULL;
    for (size_t i = 0; i < merged->n_models; i++)
        models[i] = values + (i + 2) * room;
    for (uint64_t done = 0; done < count && good; done += tile.n) {
        tile.first = first + done;
        tile.n = count - done < room ? (size_t)(count - done) : room;
        good = read_inputs(merged, &tile, error);
        if (good) {
            compute(merged, &tile);
            dtype_kernels(view->dtype).encode(tile.result, to + done * view->dtype->block_bytes, tile.n);
        }
    }
    free(models);
    free(values);
    return good;
}

void merge_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct merged *merged = (const struct merged *)view;
    if (merged->base != NULL)
        convert_depends(merged->base, encoding_of(&f32_dtype), first, count, to);
    for (size_t i = 0; i < merged->n_models; i++)
        convert_depends(merged->models[i], encoding_of(&f32_dtype), first, count, to);
}
