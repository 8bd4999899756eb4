#include "formats/numpy/numpy.h"

#include "tests/unit/check.h"

/* As numpy 1.24's numpy.lib.format.write_array_header_1_0 writes them; trailing spaces are counted, not spelled. */
static const struct {
    unsigned rank;
    uint64_t shape[11];
    const char *dictionary;
    size_t length;
} rows[] = {
    {0, {0}, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 128},
    {1, {3}, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 128},
    {2, {3, 40}, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 40), }", 128},
    {2, {0, 7}, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7), }", 128},
    /* fits in 128 bytes but for the room numpy leaves for the first dimension to grow */
    {11,
     {1, 1234567890123, 9, 9, 9, 9, 9, 9, 9, 9, 9},
     "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1234567890123, 9, 9, 9, 9, 9, 9, 9, 9, 9), }",
     192},
    /* fits exactly, so that a whole 64 bytes of padding come */
    {11,
     {1, 100000000000, 9, 9, 9, 9, 9, 9, 9, 9, 9},
     "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 100000000000, 9, 9, 9, 9, 9, 9, 9, 9, 9), }",
     192},
};

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char header[NUMPY_HEADER_MAX];
        size_t length = numpy_header(&f32_dtype, rows[i].shape, rows[i].rank, header),
               text = strlen(rows[i].dictionary);
        CHECK_NAMED(length == rows[i].length, rows[i].dictionary);
        CHECK(memcmp(header, "\x93NUMPY\x01\x00", 8) == 0);
        CHECK((size_t)(unsigned char)header[8] + 256 * (size_t)(unsigned char)header[9] + 10 == length);
        CHECK(memcmp(header + 10, rows[i].dictionary, text) == 0);
        CHECK(strspn(header + 10 + text, " ") == length - 10 - text - 1 && header[length - 1] == '\n');
    }
    return check_done();
}
