/* Packed integers: elements in a byte each, a tensor that ends inside a byte, any range. Expected values are ml_dtypes'
 * for the same bits. */
#include "quant/views/sub_byte.h"
#include "quant/views/convert.h"

#include "tests/unit/check.h"

#include <string.h>

static const unsigned char bytes[] = {0xf1, 0x28, 0xe4};

static void check_expanded(const struct dtype *dtype, uint64_t n, const char *name, const signed char *expected)
{
    struct arena *arena = arena_new();
    struct error error = {""};
    const struct view *packed = view_literal(arena, dtype, 1, &n, bytes), *view = view_expand(arena, packed);
    CHECK_TEXT(view->dtype->name, name);
    for (uint64_t first = 0; first < n; first++)
        for (uint64_t count = 0; count <= n - first; count++) {
            signed char read[12];
            float values[12];
            bool good = view_read(view, first, count, read, &error) && memcmp(read, expected + first, count) == 0 &&
                        convert_values(packed, first, count, values, &error);
            for (uint64_t i = 0; i < count; i++)
                good &= values[i] == (float)expected[first + i];
            CHECK_NAMED(good, dtype->name);
        }
    CHECK(view_bytes(packed) == (n * 8 / dtype->block_elements + 7) / 8);
    arena_free(arena);
}

int main(void)
{
    check_expanded(&i4_dtype, 5, "I8", (const signed char[]){1, -1, -8, 2, 4});
    check_expanded(&u4_dtype, 6, "U8", (const signed char[]){1, 15, 8, 2, 4, 14});
    check_expanded(&i2_dtype, 11, "I8", (const signed char[]){1, 0, -1, -1, 0, -2, -2, 0, 0, 1, -2});
    check_expanded(&u2_dtype, 9, "U8", (const signed char[]){1, 0, 3, 3, 0, 2, 2, 0, 0});
    return check_done();
}
