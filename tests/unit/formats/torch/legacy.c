/* Files of the legacy container, assembled by hand: five pickles, then the storages. */
#include "tests/unit/formats/torch/archive.h"

#include "base/little_endian.h"

#define MAGIC   "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
#define VERSION "\x80\x02M\xe9\x03."
/* what follows the sizes is not read */
#define SYSTEM               "(dVprotocol_version\nI1001\nsVlittle_endian\nI01\nsVtype_sizes\n(ds."
#define WHOLE(class, key, n) "(Vstorage\nctorch\n" class "\nV" key "\nVcpu\nI" n "\nNtQ"
#define WINDOW(key, n, view) "(Vstorage\nctorch\nFloatStorage\nV" key "\nVcpu\nI" n "\n(" view "ttQ"
#define OBJECT(storage)      "(dVx\n" PICKLE_TENSOR(storage, "0", "I2\n", "I1\n") "s."
#define GOOD                 OBJECT(WHOLE("FloatStorage", "7", "3"))

struct storage {
    uint64_t count;
    float values[3];
};

static const struct {
    const char *magic, *version, *system, *object, *keys;
    struct storage storages[2];
    unsigned n_storages;
    size_t cut, extra; /* bytes taken from the end, or added */
    bool allow_trailing;
    const char *says;
} rows[] = {
#define FILE_OF(object, keys) MAGIC, VERSION, SYSTEM, object, keys
    {FILE_OF(GOOD, "(lV7\na."), {{3, {1, 2, 3}}}, 1, 0, 0, false, "x F32 [2] 1 2"},
    {"L119547037146038801333356L\n.",
     "I1001\n.",
     SYSTEM,
     GOOD,
     "(lV7\na.",
     {{3, {1, 2, 3}}},
     1,
     0,
     0,
     false,
     "x F32 [2] 1 2"},
    {"\x80\x04\x95\x0d\0\0\0\0\0\0\0\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.",
     VERSION,
     SYSTEM,
     GOOD,
     "(lV7\na.",
     {{3, {1, 2, 3}}},
     1,
     0,
     0,
     false,
     "x F32 [2] 1 2"},
    {FILE_OF(OBJECT(WINDOW("7", "3", "Vw\nI1\nI2\n")), "(lV7\na."), {{3, {1, 2, 3}}}, 1, 0, 0, false, "x F32 [2] 2 3"},
    {FILE_OF("(dVx\n" PICKLE_TENSOR(WHOLE("FloatStorage", "8", "1"), "0", "I1\n", "I1\n") "sVy\n" PICKLE_TENSOR(
                 WHOLE("FloatStorage", "7", "3"), "0", "I3\n", "I1\n") "s.",
             "(lV7\naV8\na."),
     {{3, {1, 2, 3}}, {1, {4}}},
     2,
     0,
     0,
     false,
     "x F32 [1] 4\ny F32 [3] 1 2 3"},
    {FILE_OF("(dVx\n(Vmodule\nclib\nNet\nVnet.py\nVimport os\ntQ)\x81(dVw\n" PICKLE_TENSOR(
                 WHOLE("FloatStorage", "7", "3"), "0", "I1\n", "I1\n") "sbs.",
             "(lV7\na."),
     {{3, {1, 2, 3}}},
     1,
     0,
     0,
     false,
     "x.w F32 [1] 1"},
    {FILE_OF(GOOD, "(lV7\na."), {{3, {1, 2, 3}}}, 1, 0, 5, true, "x F32 [2] 1 2"},
    {FILE_OF("(dVn\nI1\ns.", "(l."), {{0}}, 0, 0, 0, false, "{\"n\":1}"},

    {FILE_OF(GOOD, "(lV7\na."), {{3, {1, 2, 3}}}, 1, 0, 5, false, "x.pt: 5 extra bytes after the last storage"},
    {FILE_OF(GOOD, "(lV7\na."), {{3, {1, 2, 3}}}, 1, 1, 0, false, "x.pt: storage '7' ["},
    {FILE_OF(GOOD, "(lV7\na."), {{3, {1, 2, 3}}}, 1, 13, 0, false, "storage '7': x.pt: bytes ["},
    {FILE_OF(GOOD, "(lV7\na."),
     {{2, {1, 2, 3}}},
     1,
     0,
     0,
     false,
     "x.pt: storage '7' has 2 elements, the pickle says 3"},
    {FILE_OF(GOOD, "(lV7\na."),
     {{UINT64_C(1) << 63, {1, 2, 3}}},
     1,
     0,
     0,
     false,
     "x.pt: storage '7' has -9223372036854775808 elements, the pickle says 3"},
    {FILE_OF(GOOD, "(lV7\na."),
     {{UINT64_MAX, {1, 2, 3}}},
     1,
     0,
     0,
     false,
     "x.pt: storage '7' has -1 elements, the pickle says 3"},
    {FILE_OF(GOOD, "(l."), {{0}}, 0, 0, 0, false, "x.pt: object pickle: offset 82: storage '7' is not in the file"},
    {FILE_OF(GOOD, "(lV7\naV7\na."), {{3, {1, 2, 3}}, {3, {1}}}, 2, 0, 0, false, "x.pt: storage '7' is listed twice"},
    {FILE_OF(GOOD, "(lV9\naV7\na."),
     {{3, {1, 2, 3}}, {3, {1}}},
     2,
     0,
     0,
     false,
     "x.pt: storage '9' is listed, but not referenced"},
    {FILE_OF(GOOD, "(lI7\na."),
     {{3, {1, 2, 3}}},
     1,
     0,
     0,
     false,
     "x.pt: the list of storage keys contains an element that is not text"},
    {FILE_OF(GOOD, "(d."), {{3, {1, 2, 3}}}, 1, 0, 0, false, "x.pt: the storage keys are not a list"},
    {FILE_OF("(dVx\n" PICKLE_TENSOR(WHOLE("FloatStorage", "7", "3"), "0", "I1\n", "I1\n") "sVy\n" PICKLE_TENSOR(
                 WHOLE("DoubleStorage", "7", "3"), "0", "I1\n", "I1\n") "s.",
             "(lV7\na."),
     {{3, {1, 2, 3}}},
     1,
     0,
     0,
     false,
     "storage '7' has 24 bytes here and 12 bytes at offset 82"},
    {FILE_OF(OBJECT(WINDOW("7", "3", "Vw\nI2\nI2\n")), "(lV7\na."), {{3, {1, 2, 3}}}, 1, 0, 0, false, "a view outside"},
    {FILE_OF(OBJECT(WINDOW("7", "3", "Vw\nI-1\nI2\n")), "(lV7\na."),
     {{3, {1, 2, 3}}},
     1,
     0,
     0,
     false,
     "a view outside"},
    {FILE_OF(OBJECT(WINDOW("7", "3", "Vw\nI1\nI-1\n")), "(lV7\na."),
     {{3, {1, 2, 3}}},
     1,
     0,
     0,
     false,
     "a view outside"},
    {FILE_OF(OBJECT(WINDOW("7", "3", "Vw\nI9223372036854775807\nI2\n")), "(lV7\na."),
     {{3, {1, 2, 3}}},
     1,
     0,
     0,
     false,
     "a view outside"},
    {FILE_OF(OBJECT(WINDOW("7", "3", "")), "(lV7\na."), {{3, {1, 2, 3}}}, 1, 0, 0, false, "a view outside"},
    {MAGIC,
     "I1002\n.",
     SYSTEM,
     GOOD,
     "(lV7\na.",
     {{3, {1, 2, 3}}},
     1,
     0,
     0,
     false,
     "legacy format: the protocol is not 1001"},
    {MAGIC, VERSION, "N.", GOOD, "(lV7\na.", {{3, {1, 2, 3}}}, 1, 0, 0, false, "legacy format: the type sizes"},
    {FILE_OF("cos\nsystem\n(S'id'\ntR.", "(l."),
     {{0}},
     0,
     0,
     0,
     false,
     "x.pt: object pickle at 84: offset 19: REDUCE of os.system: a function call, not data"},
    {FILE_OF("N.", "cos\nsystem\n(S'id'\ntR."),
     {{0}},
     0,
     0,
     0,
     false,
     "storage keys pickle at 86: offset 19: REDUCE of os.system"},
    {MAGIC,
     "",
     "",
     "",
     "",
     {{0}},
     0,
     0,
     0,
     false,
     "x.pt: protocol pickle at 15: offset 0: the pickle ends without STOP"},
};

static void append_pickle(struct buffer *file, const char *pickle)
{
    bool framed = pickle[0] == '\x80' && pickle[1] == '\x04'; /* its FRAME holds NULs */
    buffer_append(file, pickle, framed ? 24 : strlen(pickle));
}

static void check_rows(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buffer file = {0};
        append_pickle(&file, rows[i].magic);
        append_pickle(&file, rows[i].version);
        append_pickle(&file, rows[i].system);
        append_pickle(&file, rows[i].object);
        append_pickle(&file, rows[i].keys);
        for (unsigned j = 0; j < rows[i].n_storages; j++) {
            buffer_append_le(&file, rows[i].storages[j].count, 8);
            float values[3];
            memcpy(values, rows[i].storages[j].values, sizeof values);
            little_endian(values, 3, sizeof *values);
            buffer_append(&file, values, j == 0 ? 12 : 4);
        }
        buffer_append_zeros(&file, rows[i].extra);
        files_write("x.pt", file.bytes, file.length - rows[i].cut);
        const struct open_options options = {.allow_trailing = rows[i].allow_trailing};
        char *described = archive_describe("x.pt", &options);
        char name[120];
        if (!CHECK_NAMED(strstr(described, rows[i].says) != NULL, archive_test_name(rows[i].says, name)))
            fprintf(stderr, "  actual: %s\n", described);
        free(described);
        buffer_free(&file);
    }
}

/* A pickle that is longer than what is read at first. */
static void check_long_pickle(void)
{
    enum { LENGTH = 3000000 };
    struct buffer file = {0};
    buffer_append_text(&file, MAGIC VERSION SYSTEM "(dVtext\nX");
    buffer_append_le(&file, LENGTH, 4);
    for (int i = 0; i < LENGTH / 10; i++)
        buffer_append_text(&file, "0123456789");
    buffer_append_text(&file, "sVx\n" PICKLE_TENSOR(WHOLE("FloatStorage", "7", "1"), "0", "I1\n", "I1\n") "s.(lV7\na.");
    buffer_append_le(&file, 1, 8);
    buffer_append(&file, "\0\0\xc0\x3f", 4); /* 1.5 */
    files_write("x.pt", file.bytes, file.length);
    char *described = archive_describe("x.pt", &(const struct open_options){0});
    CHECK_TEXT(described, "x F32 [1] 1.5");
    free(described);
    buffer_free(&file);
}

/* Containers that are told apart by their first bytes, and plain pickles. */
static void check_others(void)
{
    static const struct {
        const char *start, *says;
    } others[] = {
        {"PYTORCH1....", "x.pt: the PYTORCH1 format of the 1.0 preview is not supported"},
        {"sys_info", "x.pt: the tar format of torch before 0.1.10 is not supported"},
        {"pickle", "x.pt: the tar format of torch before 0.1.10 is not supported"},
        {"\x80\x02N.", "x.pt: 508 extra bytes after the pickle"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char bytes[512] = "";
        memcpy(bytes, others[i].start, strlen(others[i].start));
        files_write("x.pt", bytes, sizeof bytes);
        char *described = archive_describe("x.pt", &(const struct open_options){0});
        CHECK_TEXT(described, others[i].says);
        free(described);
    }
    static const char *const plain[][2] = {
        {"\x80\x02N.", "x.pt: the pickle contains no tensors"},
        {"\x80\x02N\xff", "x.pt: starts like a pickle, but cannot be read: offset 3: the pickle contains 0xff, which "
                          "is not an opcode; is it a complete checkpoint?"},
        {"\x80\x02I1\nQ.", "x.pt: offset 5: a persistent id in a plain pickle"},
        {"\x80\x02"
         "cos\nsystem\n)R.",
         "x.pt: offset 14: REDUCE of os.system: a function call, not data"},
        {"\x80\x03(dVa\ncnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntC\1btR(I1\n(I2\ntcnumpy\ndtype\n("
         "Vu1\nI00\n"
         "I01\ntR(I3\nV|\nNNNI-1\nI-1\nI0\ntbI00\nC\2\1\2tbs.",
         "a U8 [2] 1 2"},
    };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        files_write_text("x.pt", plain[i][0]);
        char *described = archive_describe("x.pt", &(const struct open_options){0});
        CHECK_TEXT(described, plain[i][1]);
        free(described);
    }
}

int main(void)
{
    files_begin();
    check_rows();
    check_long_pickle();
    check_others();
    files_remove();
    return check_done();
}
