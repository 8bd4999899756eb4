#include "quant/views/hadamard.h"

#include "quant/views/convert.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { PIECE = 8192 /* elements read at once; a larger group is read whole */ };

struct rotated {
    struct view view;
    const struct view *from;
    enum hadamard kind;
    uint64_t size;
};

bool hadamard_has_size(enum hadamard kind, uint64_t size)
{
    bool is_power_of_2 = size >= 2 && size <= HADAMARD_MAX_SIZE && (size & (size - 1)) == 0;
    return is_power_of_2 && (kind == HADAMARD_SYLVESTER || size % 3 == 1); /* powers of 4 leave 1 */
}

static void multiply_sylvester(double *group, uint64_t size)
{
    for (uint64_t step = 1; step < size; step *= 2)
        for (uint64_t first = 0; first < size; first += 2 * step)
            for (uint64_t i = first; i < first + step; i++) {
                double a = group[i], b = group[i + step];
                group[i] = a + b;
                group[i + step] = a - b;
            }
}

static void multiply_regular(double *group, uint64_t size)
{
    for (uint64_t step = 1; step < size; step *= 4)
        for (uint64_t first = 0; first < size; first += 4 * step)
            for (uint64_t i = first; i < first + step; i++) {
                double a = group[i], b = group[i + step], c = group[i + 2 * step], d = group[i + 3 * step];
                group[i] = a + b + (c - d);
                group[i + step] = a + b - (c - d);
                group[i + 2 * step] = a - b + (c + d);
                group[i + 3 * step] = b - a + (c + d);
            }
}

/* Reads whole groups, and multiplies them. */
static bool read_groups(const struct rotated *rotated, uint64_t first, uint64_t count, float *values, double *group,
                        struct error *error)
{
    double divisor = sqrt((double)rotated->size);
    if (!convert_values(rotated->from, first, count, values, error))
        return false;
    for (float *at = values; at < values + count; at += rotated->size) {
        for (uint64_t i = 0; i < rotated->size; i++)
            group[i] = at[i];
        if (rotated->kind == HADAMARD_REGULAR)
            multiply_regular(group, rotated->size);
        else
            multiply_sylvester(group, rotated->size);
        for (uint64_t i = 0; i < rotated->size; i++)
            at[i] = (float)(group[i] / divisor);
    }
    return true;
}

static bool rotated_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct rotated *rotated = (const struct rotated *)view;
    uint64_t size = rotated->size, most = size < PIECE ? PIECE / size * size : size;
    float *values = memory_alloc(most * sizeof *values);
    double *group = memory_alloc(size * sizeof *group);
    unsigned char *to = out;
    bool good = true;
    while (count > 0 && good) {
        uint64_t before = first % size, start = first - before;
        uint64_t n = count < most - before ? count : most - before, whole = (before + n + size - 1) / size * size;
        good = read_groups(rotated, start, whole, values, group, error);
        if (good)
            f32_dtype.kernels[CPU_PORTABLE].encode(values + before, to, n);
        first += n;
        count -= n;
        to += n * sizeof *values;
    }
    free(values);
    free(group);
    return good;
}

static void rotated_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct rotated *rotated = (const struct rotated *)view;
    uint64_t start = first / rotated->size * rotated->size,
             end = (first + count + rotated->size - 1) / rotated->size * rotated->size;
    convert_depends(rotated->from, encoding_of(&f32_dtype), start, end - start, to);
}

static const struct view_op rotated_op = {
    .name = "hadamard", .cost = 8000, .read = rotated_read, .depends = rotated_depends};

const struct view *view_hadamard(struct arena *arena, const struct view *view, enum hadamard kind, uint64_t size)
{
    assert(hadamard_has_size(kind, size) && view_row_elements(view) % size == 0);
    struct rotated *rotated = arena_alloc(arena, sizeof *rotated);
    view_init_shared(&rotated->view, &rotated_op, &f32_dtype, view->rank, view->shape);
    rotated->from = view;
    rotated->kind = kind;
    rotated->size = size;
    return &rotated->view;
}
