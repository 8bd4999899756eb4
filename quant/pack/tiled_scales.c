#include "quant/pack/tiled_scales.h"

#include "base/checked.h"
#include "quant/views/dependencies.h"

#include <assert.h>
#include <string.h>

enum {
    TILE_ROWS = 128,
    TILE_COLUMNS = 4,
    TILE = TILE_ROWS * TILE_COLUMNS,
    DEEP = 32,          /* rows of the order inside a tile */
    WIDE = TILE / DEEP, /* bytes of such a row */
    AT_ONCE = 64,       /* tiles: rows of the matrix are read in runs of 256 scales */
    RUN = AT_ONCE * TILE_COLUMNS,
};

struct tiled {
    struct view view;
    const struct view *scales;
};

static uint64_t tiles_across(const struct tiled *tiled)
{
    return tiled->view.shape[1] / TILE_COLUMNS;
}

static size_t place_in_tile(uint64_t row, uint64_t column)
{
    return row % DEEP * WIDE + row / DEEP * TILE_COLUMNS + column;
}

/* Makes `n` tiles, at most AT_ONCE, from tile `first` of a row of tiles on. */
static bool make_tiles(const struct tiled *tiled, uint64_t down, uint64_t first, size_t n, uint8_t *tiles,
                       struct error *error)
{
    uint64_t n_rows = tiled->scales->shape[0], n_columns = tiled->scales->shape[1], column = first * TILE_COLUMNS;
    uint64_t count = n_columns - column < n * TILE_COLUMNS ? n_columns - column : n * TILE_COLUMNS;
    uint8_t run[RUN];
    memset(tiles, 0, n * TILE);
    for (uint64_t row = 0; row < TILE_ROWS && down * TILE_ROWS + row < n_rows; row++) {
        if (!view_read(tiled->scales, (down * TILE_ROWS + row) * n_columns + column, count, run, error))
            return false;
        for (uint64_t i = 0; i < count; i++)
            tiles[i / TILE_COLUMNS * TILE + place_in_tile(row, i % TILE_COLUMNS)] = run[i];
    }
    return true;
}

static bool read_tiled(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct tiled *tiled = (const struct tiled *)view;
    uint64_t across = tiles_across(tiled), end = first + count;
    uint8_t tiles[AT_ONCE * TILE], *to = out;
    while (first < end) {
        uint64_t tile = first / TILE, rest = across - tile % across, wanted = rounded_up(end, TILE) - tile;
        size_t n = rest < AT_ONCE ? rest : AT_ONCE;
        n = wanted < n ? wanted : n;
        if (!make_tiles(tiled, tile / across, tile % across, n, tiles, error))
            return false;
        uint64_t stop = (tile + n) * TILE < end ? (tile + n) * TILE : end;
        memcpy(to, tiles + (first - tile * TILE), stop - first);
        to += stop - first;
        first = stop;
    }
    return true;
}

/* Names whole rows of tiles. */
static void tiled_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct tiled *tiled = (const struct tiled *)view;
    uint64_t n_rows = tiled->scales->shape[0], n_columns = tiled->scales->shape[1],
             row_of_tiles = tiles_across(tiled) * TILE;
    uint64_t begin = first / row_of_tiles * TILE_ROWS, end = rounded_up(first + count, row_of_tiles) * TILE_ROWS;
    end = end < n_rows ? end : n_rows;
    view_depends(tiled->scales, begin * n_columns, (end - begin) * n_columns, to);
}

const struct view *view_tiled_scales(struct arena *arena, const struct view *scales)
{
    static const struct view_op op = {
        .name = "tiled scales", .cost = 16000, .read = read_tiled, .depends = tiled_depends};
    assert(scales->rank == 2 && scales->n_elements > 0 && scales->dtype->block_bytes == 1);
    const uint64_t shape[2] = {rounded_up(scales->shape[0], TILE_ROWS) * TILE_ROWS,
                               rounded_up(scales->shape[1], TILE_COLUMNS) * TILE_COLUMNS};
    struct tiled *tiled = arena_alloc(arena, sizeof *tiled);
    view_init(&tiled->view, arena, &op, scales->dtype, 2, shape);
    tiled->view.scattered = scales->scattered;
    tiled->scales = scales;
    return &tiled->view;
}
