#include "quant/views/block_views.h"

#include "quant/blocks/dtype.h"
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

enum {
    GROUPS = 4, /* groups of a block */
    GROUP_ELEMENTS = 16,
    QS = GROUP_ELEMENTS / 2,
    GROUP_BYTES = 1 + QS,
    BLOCK_BYTES = GROUPS * GROUP_BYTES,
    PIECE = 64, /* blocks read at once */
};

static const struct dtype group_dtype = {
    .name = "NVFP4 groups",
    .kind = DTYPE_BLOCK,
    .block_elements = GROUP_ELEMENTS,
    .block_bytes = GROUP_BYTES,
    .ggml_type = GGML_TYPE_NONE,
};

struct regrouped {
    struct view view;
    const struct view *from;
};

static bool split_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct view *blocks = ((const struct regrouped *)view)->from;
    unsigned char piece[PIECE * BLOCK_BYTES], *group = out;
    for (uint64_t end = first + count; first < end;) {
        uint64_t block = first / GROUPS, n = (end - 1) / GROUPS - block + 1;
        n = n < PIECE ? n : PIECE;
        if (!view_read(blocks, block, n, piece, error))
            return false;
        for (; first < end && first / GROUPS < block + n; first++, group += GROUP_BYTES) {
            const unsigned char *at = piece + (first / GROUPS - block) * BLOCK_BYTES;
            unsigned part = first % GROUPS;
            group[0] = at[part];
            memcpy(group + 1, at + GROUPS + part * QS, QS);
        }
    }
    return true;
}

static bool join_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct view *groups = ((const struct regrouped *)view)->from;
    unsigned char piece[PIECE * BLOCK_BYTES], *block = out;
    for (uint64_t end = first + count; first < end;) {
        uint64_t n = end - first < PIECE ? end - first : PIECE;
        if (!view_read(groups, first * GROUPS, n * GROUPS, piece, error))
            return false;
        for (uint64_t i = 0; i < n; i++, block += BLOCK_BYTES)
            for (unsigned part = 0; part < GROUPS; part++) {
                const unsigned char *group = piece + (i * GROUPS + part) * GROUP_BYTES;
                block[part] = group[0];
                memcpy(block + GROUPS + part * QS, group + 1, QS);
            }
        first += n;
    }
    return true;
}

static void split_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    uint64_t block = first / GROUPS;
    view_depends(((const struct regrouped *)view)->from, block, (first + count - 1) / GROUPS - block + 1, to);
}

static void join_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    view_depends(((const struct regrouped *)view)->from, first * GROUPS, count * GROUPS, to);
}

static const struct view_op split_op = {.name = "NVFP4 groups", .read = split_read, .depends = split_depends};
static const struct view_op join_op = {.name = "NVFP4 of groups", .read = join_read, .depends = join_depends};

static const struct view *regroup(struct arena *arena, const struct view *from, const struct view_op *op,
                                  const struct dtype *dtype)
{
    struct regrouped *regrouped = arena_alloc(arena, sizeof *regrouped);
    view_init(&regrouped->view, arena, op, dtype, from->rank, from->shape);
    regrouped->view.scattered = from->scattered;
    regrouped->from = from;
    return &regrouped->view;
}

const struct view *view_nvfp4_groups(struct arena *arena, const struct view *blocks)
{
    return regroup(arena, blocks, &split_op, &group_dtype);
}

const struct view *view_nvfp4_of_groups(struct arena *arena, const struct view *groups)
{
    const struct dtype *nvfp4 = dtype_by_name("NVFP4");
    if (view_row_elements(groups) % nvfp4->block_elements != 0)
        return NULL;
    return regroup(arena, groups, &join_op, nvfp4);
}
