#include "formats/shape.h"

#include "base/checked.h"
#include "base/system.h"
#include "quant/views/sub_byte.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool shape_size(const struct dtype *dtype, const uint64_t *shape, unsigned rank, uint64_t *ret_elements,
                uint64_t *ret_bytes, bool *ret_misaligned)
{
    uint64_t n_elements = 1, n_bits;
    if (ret_misaligned != NULL)
        *ret_misaligned = false;
    for (unsigned i = 0; i < rank; i++)
        if (!checked_multiply(n_elements, shape[i], &n_elements))
            return false;
    if (!checked_multiply(dtype_blocks(dtype, n_elements), (uint64_t)dtype->block_bytes * 8, &n_bits))
        return false;
    if (n_elements % dtype->block_elements != 0 && !dtype_is_sub_byte(dtype)) {
        if (ret_misaligned != NULL)
            *ret_misaligned = true;
        return false;
    }
    *ret_elements = n_elements;
    *ret_bytes = n_bits / 8;
    return true;
}

void shape_row_major_strides(const uint64_t *shape, unsigned rank, uint64_t *strides)
{
    uint64_t stride = 1;
    for (unsigned i = rank; i-- > 0;) {
        strides[i] = stride;
        stride *= shape[i];
    }
}

/* Tensors in tiles. */

/* Meshes of devices shard over a few dimensions, each of which takes one level of cuts. */
enum { MAX_CUTS = 8, MAX_SHARDED_RANK = 8 };

struct region {
    uint64_t first[MAX_SHARDED_RANK], sizes[MAX_SHARDED_RANK];
};

struct joining {
    struct arena *arena;
    unsigned rank;
    const char *reason;
};

static const char gap[] = "its pieces leave a gap or overlap";

static int compare_on(const void *a, const void *b, void *axis)
{
    uint64_t x = ((const struct tile *)a)->first[*(unsigned *)axis],
             y = ((const struct tile *)b)->first[*(unsigned *)axis];
    return (x > y) - (x < y);
}

/* Returns the number of tiles, of those sorted along the axis, that no cut separates from the first; *ret_end is the
 * end of the last. */
static size_t count_uncut(const struct tile *tiles, size_t n, unsigned axis, uint64_t *ret_end)
{
    size_t count = 0;
    *ret_end = tiles[0].first[axis];
    for (; count < n && (count == 0 || tiles[count].first[axis] < *ret_end); count++) {
        uint64_t end = tiles[count].first[axis] + tiles[count].view->shape[axis];
        *ret_end = end > *ret_end ? end : *ret_end;
    }
    return count;
}

static bool fills(const struct tile *tile, const struct region *region, unsigned rank)
{
    return memcmp(tile->first, region->first, rank * sizeof *tile->first) == 0 &&
           memcmp(tile->view->shape, region->sizes, rank * sizeof *tile->view->shape) == 0;
}

static const struct view *join(struct joining *joining, struct tile *tiles, size_t n, const struct region *region,
                               unsigned depth);

/* Joins the tiles, sorted along the axis, where cuts separate them. */
static const struct view *join_on(struct joining *joining, struct tile *tiles, size_t n, const struct region *region,
                                  unsigned axis, unsigned depth)
{
    const struct view **parts = arena_array(joining->arena, n, sizeof *parts);
    uint64_t at = region->first[axis], end;
    size_t n_parts = 0;
    for (size_t i = 0, count; i < n; i += count, at = end) {
        count = count_uncut(tiles + i, n - i, axis, &end);
        struct region part = *region;
        part.first[axis] = tiles[i].first[axis];
        part.sizes[axis] = end - part.first[axis];
        if (part.first[axis] != at)
            joining->reason = gap;
        else
            parts[n_parts] = join(joining, tiles + i, count, &part, depth + 1);
        if (joining->reason != NULL)
            return NULL;
        n_parts++;
    }
    if (at != region->first[axis] + region->sizes[axis]) {
        joining->reason = gap;
        return NULL;
    }
    return view_concatenate(joining->arena, parts, n_parts, axis);
}

static const struct view *join(struct joining *joining, struct tile *tiles, size_t n, const struct region *region,
                               unsigned depth)
{
    if (n == 1 && fills(&tiles[0], region, joining->rank))
        return tiles[0].view;
    for (unsigned axis = 0; n > 1 && axis < joining->rank && depth < MAX_CUTS; axis++) {
        uint64_t end;
        system_sort(tiles, n, sizeof *tiles, compare_on, &axis);
        if (count_uncut(tiles, n, axis, &end) < n)
            return join_on(joining, tiles, n, region, axis, depth);
    }
    joining->reason = gap;
    return NULL;
}

const struct view *tiles_join(struct arena *arena, struct tile *tiles, size_t n, unsigned rank, const uint64_t *shape,
                              const char **ret_reason)
{
    static const uint64_t origin[VIEW_MAX_RANK];
    struct joining joining = {.arena = arena, .rank = rank};
    struct region whole = {.first = {0}};
    *ret_reason = gap;
    if (n == 1 && memcmp(tiles[0].first, origin, rank * sizeof *origin) == 0 &&
        memcmp(tiles[0].view->shape, shape, rank * sizeof *shape) == 0)
        return tiles[0].view;
    if (n < 2)
        return NULL;
    if (rank > MAX_SHARDED_RANK) {
        *ret_reason = "it is cut into pieces of more than 8 dimensions, which is not supported";
        return NULL;
    }
    memcpy(whole.sizes, shape, rank * sizeof *shape);
    const struct view *joined = join(&joining, tiles, n, &whole, 0);
    *ret_reason = joining.reason;
    return joined;
}
