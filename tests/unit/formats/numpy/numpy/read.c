/* Arrays of numpy: headers that it writes and ones that it would not, and where elements are. Expected values are those
 * of numpy.load() for the same bytes. */
#include "base/text.h"
#include "tests/unit/formats/torch/archive.h"

#define HEADER(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"

static const struct open_options defaults, trailing = {.allow_trailing = true};

/* After each header come so many bytes 0, 1, 2 ... */
static const struct {
    const char *header;
    size_t n_data;
    const char *says;
} rows[] = {
    {HEADER("'<i2'", "False", "(2, 2)"), 8, "x I16 [2, 2] 256 770 1284 1798"},
    {HEADER("'>i2'", "False", "(2, 2)"), 8, "x I16 [2, 2] 1 515 1029 1543"},
    {HEADER("'|u1'", "False", "(2, 3)"), 6, "x U8 [2, 3] 0 1 2 3 4 5"},
    {HEADER("'|u1'", "True", "(2, 3)"), 6, "x U8 [2, 3] 0 2 4 1 3 5"},
    {HEADER("'|u1'", "True", "(2, 1, 3)"), 6, "x U8 [2, 1, 3] 0 2 4 1 3 5"},
    {HEADER("'>u2'", "True", "(2, 2)"), 8, "x U16 [2, 2] 1 1029 515 1543"},
    {HEADER("'|i1'", "False", "(3,)"), 3, "x I8 [3] 0 1 2"},
    {HEADER("'|b1'", "False", "(2,)"), 2, "x BOOL [2] 0 1"},
    {HEADER("'<f4'", "False", "()"), 4, "x F32 [] 3.82047e-37"},
    {HEADER("'<f2'", "False", "(1,)"), 2, "x F16 [1] 1.52588e-05"},
    {HEADER("'<V2'", "False", "(1,)"), 2, "x BF16 [1] 2.35099e-38"},
    {HEADER("'|V2'", "False", "(1,)"), 2, "x BF16 [1] 2.35099e-38"},
    {HEADER("'<u8'", "False", "(0, 4)"), 0, "x U64 [0, 4]"},
    {HEADER("'<c8'", "False", "(1,)"), 8, "x C64 [1] 00 01 02 03 04 05 06 07"},
    {HEADER("'>c8'", "False", "(1,)"), 8, "x C64 [1] 03 02 01 00 07 06 05 04"},

    /* As other versions of Python write it. */
    {HEADER("'<i2'", "False", "(2L,)"), 4, "x I16 [2] 256 770"},
    {"{\"shape\":(1,2),\"descr\":\"=i2\",\"fortran_order\":False}  \n", 4, "x I16 [1, 2] 256 770"},
    {"{'descr': '<i2', 'fortran_order': False, 'shape': (1, 1, ), }", 2, "x I16 [1, 1] 256"},

    /* What has no numbers is listed. */
    {HEADER("'|O'", "False", "(2,)"), 30,
     "x U8 [2] (pickled objects: x.npy: starts like a pickle, but cannot be read: offset 0: the pickle contains "
     "0x00, which is not an opcode; is it a complete checkpoint?)"},
    {HEADER("'<U3'", "False", "(2,)"), 24, "x U8 [2] (texts)"},
    {HEADER("'|S5'", "False", "(2,)"), 10, "x U8 [2] (texts)"},
    {HEADER("'|V3'", "False", "(2,)"), 6, "x U8 [2] (elements without a type)"},
    {HEADER("'<M8[ns]'", "False", "(2,)"), 16, "x U8 [2] (elements of an unsupported type)"},
    {HEADER("[('a', '<f4'), (']', '<i4', (2,))]", "False", "(2,)"), 24, "x U8 [2] (structured elements)"},

    /* Elements. */
    {HEADER("'<i2'", "False", "(2,)"), 3, "x.npy: truncated: 3 bytes of elements, expected 4"},
    {HEADER("'<i2'", "False", "(2,)"), 5,
     "x.npy: 1 extra bytes after the last element; -o allow_trailing ignores them"},
    {HEADER("'<i2'", "False", "(4294967296, 4294967296)"), 0, "x.npy: the size of its shape overflows"},

/* Headers. */
#define BAD "x.npy: the header is not a dictionary as numpy writes it"
    {"", 2, BAD},
    {"{", 1, BAD},
    {"{}", 0, BAD},
    {HEADER("'<i2'", "False", "(1,)") "x", 2, BAD},
    {HEADER("'<i2", "False", "(1,)"), 2, BAD},
    {HEADER("'<i\\x32'", "False", "(1,)"), 2, BAD},
    {HEADER("[('a', '<f4')", "False", "(1,)"), 2, BAD},
    {HEADER("'<i2'", "None", "(1,)"), 2, BAD},
    {HEADER("'<i2'", "False", "(1)"), 2, BAD},
    {HEADER("'<i2'", "False", "1"), 2, BAD},
    {HEADER("'<i2'", "False", "(-1,)"), 2, BAD},
    {HEADER("'<i2'", "False", "(99999999999999999999,)"), 2, BAD},
    {HEADER("'<i2'", "False", "(0, 9223372036854775808)"), 0, "x.npy: the size of its shape overflows"},
    {HEADER("'<i2'", "False", "(4611686018427387904, 0)"), 0, "x.npy: the size of its shape overflows"},
    {HEADER("'<i2'", "False", "(,)"), 2, BAD},
    {HEADER("'<i2'", "False", "(1,), 'shape': (1,)"), 2, BAD},
    {HEADER("'<i2'", "False", "(1,), 'more': 1"), 2, BAD},
    {"{'descr': '<i2', 'shape': (1,)}", 2, BAD},
    {"{'descr': '<i2' 'fortran_order': False, 'shape': (1,)}", 2, BAD},
};

/* An array as a file of that version has it. */
static void put_array(struct buffer *file, unsigned version, const char *header, size_t n_data)
{
    buffer_append(file, "\x93NUMPY", 6);
    buffer_append_le(file, version, 2);
    buffer_append_le(file, strlen(header), version == 1 ? 2 : 4);
    buffer_append_text(file, header);
    for (size_t i = 0; i < n_data; i++)
        buffer_append_le(file, i, 1);
}

static void check_array(unsigned version, const char *header, size_t n_data, const struct open_options *options,
                        const char *says)
{
    struct buffer file = {0};
    put_array(&file, version, header, n_data);
    files_write("x.npy", file.bytes, file.length);
    char *described = archive_describe("x.npy", options);
    CHECK_TEXT(described, says);
    free(described);
    buffer_free(&file);
}

static void check_versions(void)
{
    static const char header[] = HEADER("'<i2'", "False", "(2,)");
    check_array(2, header, 4, &defaults, "x I16 [2] 256 770");
    check_array(3, header, 4, &defaults, "x I16 [2] 256 770");
    check_array(4, header, 4, &defaults, "x.npy: unknown format version 4");
    check_array(0, header, 4, &defaults, "x.npy: unknown format version 0");
    check_array(257, header, 4, &defaults, "x.npy: unknown format version 1.1");
    check_array(1, header, 5, &trailing, "x I16 [2] 256 770");
    files_write("x.npy", "\x93NUMPY\1\0\1", 9);
    char *described = archive_describe("x.npy", &defaults);
    CHECK_TEXT(described, "x.npy: truncated: the array header is missing");
    free(described);
    files_write("x.npy", "\x93NUMPY\2\0\1\0\x10\0{", 13);
    described = archive_describe("x.npy", &defaults);
    CHECK_TEXT(described, "x.npy: the header is longer than a megabyte");
    free(described);
}

/* At most 64 dimensions. */
static void check_rank(unsigned rank, const char *says)
{
    struct buffer header = {0};
    buffer_append_text(&header, "{'descr': '|u1', 'fortran_order': False, 'shape': (");
    for (unsigned i = 0; i < rank; i++)
        buffer_append_text(&header, "1,");
    buffer_append_text(&header, ")}");
    buffer_append(&header, "", 1);
    struct buffer file = {0};
    put_array(&file, 1, (const char *)header.bytes, 1);
    files_write("x.npy", file.bytes, file.length);
    char *described = archive_describe("x.npy", &defaults);
    CHECK(text_starts_with(described, says));
    free(described);
    buffer_free(&header);
    buffer_free(&file);
}

static void check_archive(void)
{
    static const char header[] = HEADER("'<i2'", "False", "(2,)");
    struct buffer file = {0}, cut = {0};
    put_array(&file, 1, header, 4);
    put_array(&cut, 1, header, 3);
    const struct archive_member members[] = {{"a.npy", file.bytes, file.length},
                                             {"deep/b.npy", file.bytes, file.length, true},
                                             {"notes.txt", "x", 1},
                                             {".npy", "x", 1}};
    archive_write("x.npz", members, 4);
    char *described = archive_describe("x.npz", &defaults);
    CHECK_TEXT(described, "a I16 [2] 256 770\ndeep/b I16 [2] 256 770");
    free(described);
    for (int is_deflated = 0; is_deflated < 2; is_deflated++) {
        const struct archive_member bad[] = {{"a.npy", cut.bytes, cut.length, is_deflated}};
        archive_write("x.npz", bad, 1);
        described = archive_describe("x.npz", &defaults);
        CHECK_TEXT(described, "x.npz: a.npy: truncated: 3 bytes of elements, expected 4");
        free(described);
    }
    const struct archive_member other[] = {{"a.npy", "not an array at all", 19}};
    archive_write("x.npz", other, 1);
    described = archive_describe("x.npz", &defaults);
    CHECK_TEXT(described, "x.npz: a.npy: not a numpy array: it does not start with \\x93NUMPY");
    free(described);
    buffer_free(&file);
    buffer_free(&cut);
}

int main(void)
{
    files_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_array(1, rows[i].header, rows[i].n_data, &defaults, rows[i].says);
    check_versions();
    check_rank(64, "x U8 [1, 1, ");
    check_rank(65, BAD);
    check_archive();
    files_remove();
    return check_done();
}
