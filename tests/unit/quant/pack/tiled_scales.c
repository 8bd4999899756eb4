/* Scales in tiles: every range equals what the layout says of each byte. */
#include "quant/pack/tiled_scales.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

static struct arena *arena;

/* Returns the bytes, by cuBLAS's formula for the place of row and column. */
static uint8_t *expected_tiles(const uint8_t *scales, uint64_t rows, uint64_t columns, uint64_t across, size_t size)
{
    uint8_t *tiles = calloc(size, 1);
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t column = 0; column < columns; column++) {
            uint64_t tile = row / 128 * across + column / 4;
            tiles[tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + column % 4] = scales[row * columns + column];
        }
    return tiles;
}

static void check_tiles(uint64_t rows, uint64_t columns, uint64_t down, uint64_t across)
{
    const uint64_t shape[2] = {rows, columns};
    uint8_t *scales = malloc(rows * columns);
    for (uint64_t i = 0; i < rows * columns; i++)
        scales[i] = (uint8_t)(i * 2654435761u >> 13);
    const struct view *tiled = view_tiled_scales(arena, view_literal(arena, &u8_dtype, 2, shape, scales));
    size_t size = down * across * 512, n_wrong = 0;
    CHECK(tiled->shape[0] == down * 128 && tiled->shape[1] == across * 4 && tiled->n_elements == size);
    uint8_t *wanted = expected_tiles(scales, rows, columns, across, size), *found = malloc(size);
    struct error error;
    for (size_t count = size; count > 0; count = count * 3 / 7)
        for (size_t first = 0; first + count <= size; first += count / 2 + size / 9 + 1) {
            n_wrong += !view_read(tiled, first, count, found, &error);
            n_wrong += memcmp(found, wanted + first, count) != 0;
        }
    CHECK(n_wrong == 0);
    free(scales);
    free(wanted);
    free(found);
}

int main(void)
{
    arena = arena_new();
    check_tiles(1, 1, 1, 1);
    check_tiles(128, 4, 1, 1);
    check_tiles(130, 5, 2, 2);
    check_tiles(300, 1030, 3, 258);
    arena_free(arena);
    return check_done();
}
