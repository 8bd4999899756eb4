/* Filters of chunks, undone. The checksum and the LZF data are h5py's, for chunks of these bytes. */
#include "formats/hdf5/object.h"

#include "tests/unit/check.h"

#include <string.h>
#include <zlib.h>

enum { DEFLATE = 1, SHUFFLE = 2, FLETCHER32 = 3, LZF = 32000 };

static const char *undo(struct hdf5_filters filters, uint32_t mask, const char *stored, size_t n_stored,
                        const char *wanted, size_t n_wanted)
{
    unsigned char copy[256], out[256];
    memcpy(copy, stored, n_stored);
    const char *reason = hdf5_filters_undo(&filters, mask, copy, n_stored, out, n_wanted);
    CHECK(reason != NULL || memcmp(out, wanted, n_wanted) == 0);
    return reason;
}

static void test_shuffle(void)
{
    const struct hdf5_filters filters = {.n_filters = 1, .list = {{SHUFFLE, 4}}};
    CHECK(undo(filters, 0, "aeibfjcgkdhl", 12, "abcdefghijkl", 12) == NULL);
    CHECK(undo(filters, 0, "aebfcgdhij", 10, "abcdefghij", 10) == NULL);
    CHECK(undo(filters, 1, "abcdefghij", 10, "abcdefghij", 10) == NULL); /* stored without */
    CHECK_TEXT(undo(filters, 0, "aebfcgdhij", 10, "", 12), "a chunk does not have its size after decoding");
    CHECK(!hdf5_filters_skip(&filters, 0) && hdf5_filters_skip(&filters, 1));
}

static void test_fletcher32(void)
{
    const struct hdf5_filters filters = {.n_filters = 1, .list = {{FLETCHER32, 0}}};
    CHECK(undo(filters, 0, "\0\1\2\3\4\5\6\7\x10\x0c\x1e\x14", 12, "\0\1\2\3\4\5\6\7", 8) == NULL);
    CHECK(undo(filters, 0, "\0\1\2\3\4\5\6\x9\x0c\x17\x14", 11, "\0\1\2\3\4\5\6", 7) == NULL);
    /* as old versions stored it */
    CHECK(undo(filters, 0, "\0\1\2\3\4\5\6\7\x0c\x10\x14\x1e", 12, "\0\1\2\3\4\5\6\7", 8) == NULL);
    CHECK_TEXT(undo(filters, 0, "\0\1\2\3\4\5\6\x8\x10\x0c\x1e\x14", 12, "", 8), "the checksum of a chunk is wrong");
    CHECK_TEXT(undo(filters, 0, "abc", 3, "", 0), "a chunk is shorter than its checksum");
}

static void test_lzf(void)
{
    const struct hdf5_filters filters = {.n_filters = 1, .list = {{LZF, 0}}};
    CHECK(undo(filters, 0, "\2aba\xe0\x0d\1\xe0\x0a\0\2xyz", 14,
               "abababababababababababab"
               "aaaaaaaaaaaaaaaaaaaaxyz",
               47) == NULL);
    CHECK(undo(filters, 0, "\2abc", 4, "abc", 3) == NULL);
    CHECK(undo(filters, 0, "\1ab\x60\1", 5, "abababa", 7) == NULL);         /* a copy of 5 bytes, 2 back */
    CHECK(undo(filters, 0, "\0a\xe0\3\0", 5, "aaaaaaaaaaaaa", 13) == NULL); /* of 12, 1 back */
    CHECK_TEXT(undo(filters, 0, "\0a\x60\1", 4, "", 6), "the compressed data of a chunk are damaged");
    CHECK_TEXT(undo(filters, 0, "\5a", 2, "", 6), "the compressed data of a chunk are damaged");
    CHECK_TEXT(undo(filters, 0, "\0a\x60", 3, "", 6), "the compressed data of a chunk are truncated");
    CHECK_TEXT(undo(filters, 0, "\0a\xe0\xff\0", 5, "", 6), "the compressed data of a chunk are damaged");
}

static void test_deflate(void)
{
    const struct hdf5_filters filters = {.n_filters = 2, .list = {{SHUFFLE, 2}, {DEFLATE, 6}}};
    unsigned char packed[64];
    uLongf length = sizeof packed;
    CHECK(compress(packed, &length, (const unsigned char *)"acbd", 4) == Z_OK);
    CHECK(undo(filters, 0, (char *)packed, length, "abcd", 4) == NULL);
    CHECK(undo(filters, 1, (char *)packed, length, "acbd", 4) == NULL);
    CHECK(undo(filters, 3, "abcd", 4, "abcd", 4) == NULL);
    CHECK(undo(filters, 0, (char *)packed, length - 5, "", 4) != NULL);
    CHECK_TEXT(undo(filters, 0, "xyzxyz", 6, "", 4), "the compressed data of a chunk are damaged");
    length = sizeof packed;
    CHECK(compress(packed, &length, (const unsigned char[200]){0}, 200) == Z_OK);
    CHECK_TEXT(undo(filters, 0, (char *)packed, length, "", 4), "a chunk inflates to more than its size");
}

int main(void)
{
    test_shuffle();
    test_fletcher32();
    test_lzf();
    test_deflate();
    return check_done();
}
