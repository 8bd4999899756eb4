#include "formats/shape.h"
#include "base/text.h"

#include "tests/unit/check.h"

static const struct {
    const char *name, *dtype;
    unsigned rank;
    uint64_t shape[4];
    bool fits, misaligned;
    uint64_t n_elements, n_bytes;
} sizes[] = {
    {"a scalar", "F32", 0, {0}, true, false, 1, 4},
    {"a matrix", "BF16", 2, {3, 5}, true, false, 15, 30},
    {"an empty one", "F64", 3, {2, 0, 3}, true, false, 0, 0},
    {"the largest", "U8", 1, {UINT64_MAX / 8}, true, false, UINT64_MAX / 8, UINT64_MAX / 8},
    {"one more", "U8", 1, {UINT64_MAX / 8 + 1}, false, false, 0, 0},
    {"the largest of 4 bits", "F4", 1, {UINT64_MAX / 4 - 1}, true, false, UINT64_MAX / 4 - 1, UINT64_MAX / 8},
    {"bits that overflow", "F32", 1, {UINT64_MAX / 32 + 1}, false, false, 0, 0},
    {"elements that overflow", "U8", 2, {1ull << 32, 1ull << 32}, false, false, 0, 0},
    {"a product that wraps to 4", "U8", 3, {4194305, 4194305, 211106198978564}, false, false, 0, 0},
    {"0 before an overflow", "I32", 3, {0, 1ull << 63, 4}, true, false, 0, 0},
    {"0 after an overflow", "I32", 3, {1ull << 63, 4, 0}, false, false, 0, 0},
    {"half a byte", "F4", 1, {3}, false, true, 0, 0},
    {"rows of half a byte", "F4", 2, {2, 3}, true, false, 6, 3},
    {"F6 in whole bytes", "F6_E2M3", 1, {8}, true, false, 8, 6},
    {"F6 in parts of bytes", "F6_E3M2", 1, {6}, false, true, 0, 0},
};

int main(void)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t n_elements = 0, n_bytes = 0;
        bool misaligned;
        bool fits = shape_size(dtype_by_name(sizes[i].dtype), sizes[i].shape, sizes[i].rank, &n_elements, &n_bytes,
                               &misaligned);
        CHECK_NAMED(fits == sizes[i].fits && misaligned == sizes[i].misaligned && n_elements == sizes[i].n_elements &&
                        n_bytes == sizes[i].n_bytes,
                    sizes[i].name);
    }

    uint64_t strides[3];
    shape_row_major_strides((const uint64_t[]){2, 3, 4}, 3, strides);
    CHECK(strides[0] == 12 && strides[1] == 4 && strides[2] == 1);

    char text[16];
    CHECK_TEXT(shape_text(NULL, 0, text, sizeof text), "[]");
    CHECK_TEXT(shape_text((const uint64_t[]){2, 3}, 2, text, sizeof text), "[2, 3]");
    CHECK_TEXT(shape_text((const uint64_t[]){1234567, 1234567, 1}, 3, text, sizeof text), "[1234567, 12345");
    return check_done();
}
