#include "quant/views/block_views.h"

#include "quant/views/convert.h"

#include <string.h>

/* Permuted blocks. */

struct permuted_blocks {
    struct view view;
    const struct view *decoded, *blocks;
    unsigned order[VIEW_MAX_RANK];
};

static bool permuted_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return view_read(((const struct permuted_blocks *)view)->decoded, first, count, out, error);
}

static void permuted_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    view_depends(((const struct permuted_blocks *)view)->decoded, first, count, to);
}

static const struct view_op permuted_blocks_op = {
    .name = "permuted blocks", .read = permuted_read, .depends = permuted_depends};

const struct view *view_of_permuted_blocks(struct arena *arena, const struct view *blocks, const unsigned *order)
{
    struct permuted_blocks *permuted = arena_alloc(arena, sizeof *permuted);
    permuted->decoded = view_permute(arena, view_convert(arena, blocks, &f32_dtype), order);
    permuted->blocks = blocks;
    memcpy(permuted->order, order, blocks->rank * sizeof *order);
    view_init_shared(&permuted->view, &permuted_blocks_op, &f32_dtype, blocks->rank, permuted->decoded->shape);
    permuted->view.scattered = permuted->decoded->scattered;
    return &permuted->view;
}

const struct view *permuted_blocks_of(const struct view *view, const unsigned **ret_order)
{
    const struct permuted_blocks *permuted = (const struct permuted_blocks *)view;
    if (view->op != &permuted_blocks_op)
        return NULL;
    *ret_order = permuted->order;
    return permuted->blocks;
}

/* Blocks with separate factors. */

struct scaled_blocks {
    struct view view;
    const struct view *blocks, *values;
};

static bool scaled_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return view_read(((const struct scaled_blocks *)view)->blocks, first, count, out, error);
}

static void scaled_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    view_depends(((const struct scaled_blocks *)view)->blocks, first, count, to);
}

static const struct view_op scaled_blocks_op = {
    .name = "scaled blocks", .read = scaled_read, .depends = scaled_depends};

const struct view *view_of_scaled_blocks(struct arena *arena, const struct view *blocks, const struct view *values)
{
    struct scaled_blocks *scaled = arena_alloc(arena, sizeof *scaled);
    view_init_shared(&scaled->view, &scaled_blocks_op, blocks->dtype, blocks->rank, blocks->shape);
    scaled->view.scattered = blocks->scattered;
    scaled->blocks = blocks;
    scaled->values = values;
    return &scaled->view;
}

const struct view *values_of_blocks(const struct view *view)
{
    return view->op == &scaled_blocks_op ? ((const struct scaled_blocks *)view)->values : view;
}
