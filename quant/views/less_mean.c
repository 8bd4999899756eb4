#include "quant/views/norms.h"

#include "base/little_endian.h"
#include "quant/arithmetic/torch_sum.h"
#include "quant/views/convert.h"

#include <stdlib.h>
#include <string.h>

static float sum_of(const float *values, size_t n)
{
    struct torch_sum sum;
    size_t n_whole = n - n % TORCH_SUM_STEP;
    torch_sum_begin(&sum, n);
    torch_sum_add(&sum, values, n_whole);
    return torch_sum_end(&sum, values + n_whole, n - n_whole);
}

struct centered {
    struct view view;
    const struct view *inner;
};

static bool centered_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    size_t n = (size_t)view->n_elements;
    float *values = memory_alloc(n * sizeof *values);
    bool read = convert_values(((const struct centered *)view)->inner, 0, n, values, error);
    if (read) {
        float mean = sum_of(values, n) / (float)n;
        for (uint64_t i = 0; i < count; i++)
            values[first + i] -= mean;
        little_endian(values + first, count, sizeof *values);
        memcpy(out, values + first, count * sizeof *values);
    }
    free(values);
    return read;
}

static void centered_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    /* The mean depends on all elements. */
    convert_depends(((const struct centered *)view)->inner, encoding_of(&f32_dtype), 0, view->n_elements, to);
}

static const struct view_op centered_op = {.name = "centered", .read = centered_read, .depends = centered_depends};

const struct view *view_less_mean(struct arena *arena, const struct view *vector)
{
    if (vector->rank != 1 || vector->n_elements == 0 || vector->n_elements > LESS_MEAN_MAX_ELEMENTS)
        return NULL;
    struct centered *centered = arena_alloc(arena, sizeof *centered);
    view_init_shared(&centered->view, &centered_op, &f32_dtype, 1, vector->shape);
    centered->inner = vector;
    return &centered->view;
}
