/* HDF5 files: the checksum, by the values in lookup3.c, and superblocks. */
#include "formats/hdf5/file.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

#include "sources/location.h"

#include <stdlib.h>
#include <string.h>

static void test_checksum(void)
{
    static const char text[] = "Four score and seven years ago";
    CHECK(hdf5_lookup3((const unsigned char *)text, strlen(text)) == 0x17770551);
    CHECK(hdf5_lookup3((const unsigned char *)text, 0) == 0xdeadbeef);
}

/* A superblock of version 0 with a user block of `base` bytes; the file has `more` bytes after it. */
static size_t write_superblock(size_t base, unsigned char version, unsigned char width, size_t end, size_t more)
{
    enum { SIZE = 104, VERSION = 8, WIDTH = 13, END = 40 };
    unsigned char bytes[4096] = {0};
    memcpy(bytes + base, "\x89HDF\r\n\x1a\n", 8);
    bytes[base + VERSION] = version;
    bytes[base + WIDTH] = bytes[base + WIDTH + 1] = width;
    bytes[base + END] = (unsigned char)end;
    bytes[base + END + 1] = (unsigned char)(end >> 8);
    files_write("x.h5", bytes, base + SIZE + more);
    return base + SIZE + more;
}

static const struct {
    size_t base;
    unsigned char version, width;
    size_t end, more;
    const char *says; /* NULL: it is read */
} rows[] = {
    {0, 0, 8, 104, 0, NULL},
    {512, 0, 8, 616, 0, NULL},
    {2048, 0, 8, 2152, 0, NULL},
    {256, 0, 8, 360, 0, "x.h5: not an HDF5 file: the signature is missing"},
    {0, 0, 8, 105, 0, "x.h5: truncated: the superblock gives 105 bytes, but the file has 104"},
    {0, 0, 8, 105, 1, NULL},
    {0, 0, 4, 104, 0, "x.h5: an HDF5 file with addresses of 4 bytes and lengths of 4; wfs reads those with 8"},
    {0, 4, 8, 104, 0, "x.h5: an HDF5 file with a superblock of version 4; wfs reads versions 0 to 3"},
    {0, 2, 0, 104, 0, "x.h5: an HDF5 file with addresses of 0 bytes and lengths of 0; wfs reads those with 8"},
};

static void test_superblocks(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error = {""};
        write_superblock(rows[i].base, rows[i].version, rows[i].width, rows[i].end, rows[i].more);
        struct source *source = location_open_file("x.h5", &error);
        struct hdf5 *file = hdf5_open(source, &error);
        CHECK_TEXT(error.message, rows[i].says != NULL ? rows[i].says : "");
        CHECK((file != NULL) == (rows[i].says == NULL));
        CHECK(file == NULL || file->base == rows[i].base);
        free(file);
        source_close(source);
    }
}

/* Structures that refer to one another are read as often as the file's size allows, and then no more. */
static void test_budget(void)
{
    struct error error = {""};
    char text[64];
    uint64_t n = 0;
    write_superblock(0, 0, 8, 104, 0);
    struct source *source = location_open_file("x.h5", &error);
    struct hdf5 *file = hdf5_open(source, &error);
    CHECK(file != NULL);
    for (; hdf5_read(file, 0, sizeof text, text, &error); n++)
        CHECK(n < 1 << 20);
    CHECK_TEXT(error.message, "x.h5: address 0: damaged: its structures refer to one another again and again");
    CHECK(!hdf5_read(file, 100, 5, text, &error));
    CHECK_TEXT(error.message,
               "x.h5: address 100: damaged: the address of a structure, or its end, is outside the file");
    CHECK(!hdf5_holds(file, UINT64_MAX, 2) && !hdf5_holds(file, 1, UINT64_MAX) && hdf5_holds(file, 104, 0));
    free(file);
    source_close(source);
}

int main(void)
{
    files_begin();
    test_checksum();
    test_superblocks();
    test_budget();
    return check_done();
}
