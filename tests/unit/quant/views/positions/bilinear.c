/* Pictures made larger and smaller. Expected: FNV-1a of the bytes of torch.nn.functional.interpolate(mode='bilinear',
 * align_corners=True) of torch 2.9.1 for the same pictures, as positions of a vision tower are put to it. */
#include "quant/views/positions.h"
#include "tests/unit/check.h"

enum { CHANNELS = 16, MOST = 25 * CHANNELS };

static uint32_t hash(const void *bytes, size_t size)
{
    uint32_t value = 2166136261;
    for (size_t i = 0; i < size; i++)
        value = (value ^ ((const unsigned char *)bytes)[i]) * 16777619;
    return value;
}

static void check_sides(uint64_t side, uint64_t new_side, uint32_t expected)
{
    struct error error = {""};
    struct arena *arena = arena_new();
    float values[MOST], whole[MOST], parts[MOST];
    const uint64_t shape[] = {1, side * side, CHANNELS};
    for (uint32_t i = 0; i < side * side * CHANNELS; i++)
        values[i] = (float)(i * 2654435761U >> 8) / (1 << 23) - 1;
    const struct view *view = view_bilinear(arena, view_numbers(arena, 3, shape, values), new_side);
    uint64_t n = new_side * new_side * CHANNELS;
    if (CHECK(view != NULL && view->n_elements == n && view->shape[1] == new_side * new_side)) {
        CHECK_NAMED(view_read(view, 0, n, whole, &error), error.message);
        for (uint64_t i = 0; i < n; i += 7)
            CHECK(view_read(view, i, i + 7 < n ? 7 : n - i, parts + i, &error));
        CHECK(hash(whole, n * sizeof *whole) == expected);
        CHECK(hash(parts, n * sizeof *parts) == expected);
    }
    arena_free(arena);
}

static void check_refusals(void)
{
    struct arena *arena = arena_new();
    static const float values[6];
    const uint64_t flat[] = {2, 3}, oblong[] = {1, 2, 3}, empty[] = {1, 0, 3}, square[] = {1, 1, 6};
    CHECK(view_bilinear(arena, view_numbers(arena, 2, flat, values), 2) == NULL);
    CHECK(view_bilinear(arena, view_numbers(arena, 3, oblong, values), 2) == NULL);
    CHECK(view_bilinear(arena, view_numbers(arena, 3, empty, values), 2) == NULL);
    CHECK(view_bilinear(arena, view_numbers(arena, 3, square, values), 0) == NULL);
    CHECK(view_bilinear(arena, view_numbers(arena, 3, square, values), UINT64_MAX) == NULL);
    arena_free(arena);
}

int main(void)
{
    check_sides(3, 2, 0xb14d794f);
    check_sides(5, 3, 0xa6c0ac50);
    check_sides(2, 4, 0xdcd2431a);
    check_refusals();
    return check_done();
}
