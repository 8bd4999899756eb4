/* GGUF files of every version and byte order, split ones, and everything that has been tried against readers of GGUF.
 */
#include "base/text.h"
#include "formats/checkpoint.h"

#include "tests/unit/check.h"
#include "tests/unit/formats/readers_table.h"
#include "tests/unit/numbers.h"
#include "tests/unit/write_gguf.h"

static const struct open_options usual;

/* "ok" and the number of tensors, or the message; of the file "m.gguf" unless `path` says another. */
static const char *outcome(const char *path)
{
    static char text[1100];
    struct error error = {""};
    const struct checkpoint *checkpoint = checkpoint_open(path, readers, &usual, &error);
    if (checkpoint != NULL)
        snprintf(text, sizeof text, "ok %zu", checkpoint->tensors->n_tensors);
    else
        snprintf(text, sizeof text, "%s", error.message);
    checkpoint_close(checkpoint);
    return text;
}

static void gives(struct assembly *file, const char *expected)
{
    write_file(file, "m.gguf");
    const char *text = outcome("m.gguf");
    CHECK_TEXT(text_starts_with(text, "m.gguf: ") ? text + 8 : text, expected);
    buffer_free(&file->bytes);
}

/* Two tensors: F32 [3, 2] of 0, 1, 2 ... and Q8_0 [32]. */
static void put_model(struct assembly *file, unsigned version)
{
    begin(file, version, 2, 2);
    put_key(file, "general.architecture", 8), put_string(file, "llama");
    put_u32_key(file, "llama.context_length", 4096);
    put_tensor(file, "a.weight", DIMENSIONS(3, 2), 0, 0);
    put_tensor(file, "b.weight", DIMENSIONS(32), 8, 32);
    pad(file, 32);
    for (uint32_t i = 0; i < 6; i++) {
        float value = (float)i;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        put(file, bits, 4);
    }
    put_data(file, 32, 34);
}

static void reads(unsigned version, bool big_endian)
{
    struct assembly file = {.big_endian = big_endian};
    struct error error = {""};
    uint64_t context = 0;
    float values[6] = {0};
    put_model(&file, version);
    write_file(&file, "m.gguf");
    buffer_free(&file.bytes);
    const struct checkpoint *checkpoint = checkpoint_open("m.gguf", readers, &usual, &error);
    CHECK_TEXT(error.message, "");
    CHECK(checkpoint->tensors->n_tensors == 2 && checkpoint->kind == CHECKPOINT_GGUF);
    CHECK(gguf_get_u64(&checkpoint->metadata, "llama.context_length", &context) && context == 4096);
    const struct tensor *a = tensor_set_find(checkpoint->tensors, "a.weight", 8),
                        *b = tensor_set_find(checkpoint->tensors, "b.weight", 8);
    CHECK(a->rank == 2 && a->shape[0] == 2 && a->shape[1] == 3 && b->rank == 1 && b->shape[0] == 32);
    CHECK(b->length == 34 && strcmp(b->dtype->name, "Q8_0") == 0);
    CHECK((b->dtype->kernels[CPU_PORTABLE].decode == NULL) == big_endian);
    const struct view *view = tensor_view(a, checkpoint->arena);
    CHECK(read_numbers(view, 0, 6, values, &error) && values[0] == 0 && values[1] == 1 && values[5] == 5);
    checkpoint_close(checkpoint);
}

static void takes_what_the_reference_takes(void)
{
    struct assembly file = {0};
    begin(&file, 3, 1, 0);
    put_string(&file, "scalar"), put(&file, 0, 4), put(&file, 0, 4), put(&file, 0, 8);
    put_data(&file, 32, 4);
    gives(&file, "ok 1");
    begin(&file, 3, 1, 0), put_tensor(&file, "none", DIMENSIONS(0, 5), 0, 0), pad(&file, 32);
    gives(&file, "ok 1");
    begin(&file, 3, 1, 0), put_tensor(&file, "", DIMENSIONS(1), 0, 0), put_data(&file, 32, 4);
    gives(&file, "ok 1");
    begin(&file, 3, 1, 0), put_tensor(&file, "../../x\xff", DIMENSIONS(1), 0, 0), put_data(&file, 32, 4);
    gives(&file, "ok 1");
    begin(&file, 3, 1, 1), put_key(&file, "k\xff", 7), put(&file, 7, 1);
    put_tensor(&file, "unpadded", DIMENSIONS(1), 0, 0), put_data(&file, 32, 4);
    gives(&file, "ok 1");
    begin(&file, 2, 0, 0), put_data(&file, 32, 100);
    gives(&file, "ok 0");
    for (uint32_t alignment = 1; alignment <= 4096; alignment *= 4) {
        begin(&file, 3, 2, 1), put_u32_key(&file, "general.alignment", alignment);
        put_tensor(&file, "a", DIMENSIONS(1), 24, 0), put_tensor(&file, "b", DIMENSIONS(1), 24, alignment);
        put_data(&file, alignment, alignment + 1);
        gives(&file, "ok 2");
    }
    char name[128] = "";
    memset(name, 'n', 127);
    begin(&file, 3, 1, 0), put_tensor(&file, name, DIMENSIONS(1), 0, 0), put_data(&file, 32, 4);
    gives(&file, "ok 1");
    begin(&file, 3, 1, 0), put_tensor(&file, "t", DIMENSIONS(2, 1, 1, 2, 1), 0, 0), put_data(&file, 32, 16);
    gives(&file, "ok 1");
}

static void header_attacks(void)
{
    struct assembly file = {0};
    begin(&file, 3, 0, 0), file.bytes.bytes[3] = 'G';
    gives(&file,
          "not a GGUF file: it does not start with GGUF; download it again, or rename it if it has another format");
    buffer_append(&file.bytes, "GGU", 3);
    gives(&file, "truncated: 4 bytes expected at offset 0 of 3; an interrupted download?");
    buffer_append(&file.bytes, "GGUF\3\0\0", 7);
    gives(&file, "truncated: 4 bytes expected at offset 4 of 7; an interrupted download?");
    begin(&file, 0, 0, 0),
        gives(&file, "unsupported version 0: known versions are 1 to 3; download the file again, or update wfs");
    begin(&file, 4, 0, 0),
        gives(&file, "unsupported version 4: known versions are 1 to 3; download the file again, or update wfs");
    begin(&file, 0x00010000, 0, 0),
        gives(&file, "unsupported version 256: known versions are 1 to 3; download the file again, or update wfs");
    begin(&file, 3, UINT64_C(1) << 63, 0);
    gives(&file, "truncated: 9223372036854775808 tensors, and only 0 bytes follow; an interrupted download?");
    begin(&file, 3, 0, UINT64_C(1) << 63);
    gives(&file, "truncated: 9223372036854775808 keys, and only 0 bytes follow; an interrupted download?");
    begin(&file, 3, 0, UINT64_MAX);
    gives(&file, "truncated: 18446744073709551615 keys, and only 0 bytes follow; an interrupted download?");
    begin(&file, 3, 0, 1), put_data(&file, 1, 13);
    gives(&file, "truncated: 1 keys, and only 13 bytes follow; an interrupted download?");
    begin(&file, 3, 0, 0);
    gives(&file, "ok 0");
    begin(&file, 3, 1, 0), put_tensor(&file, "t", DIMENSIONS(0), 0, 0);
    gives(&file, "truncated: its data begins at a multiple of 32 after offset 57 of 57; an interrupted download?");
}

static void key_attacks(void)
{
    struct assembly file = {0};
    begin(&file, 3, 0, 1), put(&file, UINT64_MAX, 8), put_data(&file, 1, 32);
    gives(&file, "key 1 of 1: string too long: 18446744073709551615 bytes, the limit is 1073741824");
    begin(&file, 3, 0, 1), put_key(&file, "", 4), put_data(&file, 1, 32);
    gives(&file, "key 1 of 1: its name is empty; download the file again, or ask its maker");
    begin(&file, 3, 0, 1), put_key(&file, "k", 13), put_data(&file, 1, 32);
    gives(&file, "key 1 of 1: 'k': unknown value type 13; download the file again, or update wfs");
    begin(&file, 3, 0, 2), put_u32_key(&file, "k", 1), put_u32_key(&file, "k", 2), put_data(&file, 32, 0);
    gives(&file, "key 2 of 2: 'k' occurs twice; download the file again, or ask its maker");
    begin(&file, 3, 0, 1), put_key(&file, "k", 9), put_array(&file, 0, UINT64_C(1) << 63), put_data(&file, 1, 32);
    gives(&file, "key 1 of 1: 'k': array too long: 9223372036854775808 elements, the limit is 1073741824");
    begin(&file, 3, 0, 1), put_key(&file, "k", 9), put_array(&file, 12, 1 << 29), put_data(&file, 1, 32);
    gives(&file, "key 1 of 1: 'k': truncated: an array of 536870912 elements, but only 32 bytes follow; an interrupted "
                 "download?");
    static const uint32_t alignments[] = {0, 3, 31, 0x7fffffff};
    static const char *const reasons[] = {
        "general.alignment is 0, not a power of two; download the file again, or ask its maker",
        "general.alignment is 3, not a power of two; download the file again, or ask its maker",
        "general.alignment is 31, not a power of two; download the file again, or ask its maker",
        "general.alignment is 2147483647, not a power of two; download the file again, or ask its maker",
    };
    for (size_t i = 0; i < 4; i++) {
        begin(&file, 3, 0, 1), put_u32_key(&file, "general.alignment", alignments[i]), put_data(&file, 32, 0);
        gives(&file, reasons[i]);
    }
    begin(&file, 3, 1, 1), put_u32_key(&file, "general.alignment", 0x80000000),
        put_tensor(&file, "t", DIMENSIONS(0), 0, 0), put_data(&file, 32, 0);
    gives(&file,
          "truncated: its data begins at a multiple of 2147483648 after offset 90 of 96; an interrupted download?");
    begin(&file, 3, 0, 1), put_key(&file, "general.alignment", 10), put(&file, 32, 8), put_data(&file, 32, 0);
    gives(&file, "general.alignment is u64, not u32; download the file again, or ask its maker");
    begin(&file, 3, 0, 1), put_key(&file, "general.alignment", 5), put(&file, 32, 4), put_data(&file, 32, 0);
    gives(&file, "general.alignment is i32, not u32; download the file again, or ask its maker");
    begin(&file, 3, 0, 1), put_key(&file, "general.alignment", 8), put_string(&file, "32"), put_data(&file, 32, 0);
    gives(&file, "general.alignment is string, not u32; download the file again, or ask its maker");
}

static void name_attacks(void)
{
    struct assembly file = {0};
    char name[129] = "";
    memset(name, 'n', 128);
    begin(&file, 3, 1, 0), put_tensor(&file, name, DIMENSIONS(1), 0, 0), put_data(&file, 32, 4);
    gives(&file, "tensor 1 of 1: name too long: 128 bytes, the limit is 127");
    begin(&file, 3, 1, 0), put(&file, UINT64_MAX, 8), put_data(&file, 32, 64);
    gives(&file, "tensor 1 of 1: name too long: 18446744073709551615 bytes, the limit is 127");
    begin(&file, 3, 2, 0), put_tensor(&file, "t", DIMENSIONS(1), 0, 0), put_tensor(&file, "t", DIMENSIONS(1), 0, 32);
    put_data(&file, 32, 64);
    gives(&file, "tensor 't' is also in m.gguf");
    begin(&file, 3, 2, 0), put_tensor(&file, "t", DIMENSIONS(1), 0, 0);
    put_text(&file, "t\0u", 3), put(&file, 0, 4), put(&file, 0, 4), put(&file, 32, 8), put_data(&file, 32, 64);
    gives(&file, "tensor 't' is also in m.gguf");
}

static void tensor_attacks(void)
{
    static const unsigned removed[] = {4, 5, 31, 32, 33, 36, 37, 38, 43, 97, 0xffffffff, 0x7fffffff};
    struct assembly file = {0};
    char expected[128];
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++) {
        begin(&file, 3, 1, 0), put_tensor(&file, "t", DIMENSIONS(256), removed[i], 0), put_data(&file, 32, 1024);
        snprintf(expected, sizeof expected,
                 "tensor 't': unknown tensor type %u; download the file again, or update wfs", removed[i]);
        gives(&file, expected);
    }
    begin(&file, 3, 1, 0), put_tensor(&file, "t", DIMENSIONS(1, 1, 1, 1, 1, 1), 0, 0), put_data(&file, 32, 4);
    gives(&file, "tensor 't': too many dimensions: 6, the limit is 5");
    begin(&file, 3, 1, 0), put_string(&file, "t"), put(&file, 0x80000000, 4), put_data(&file, 32, 64);
    gives(&file, "tensor 't': too many dimensions: 2147483648, the limit is 5");
    begin(&file, 3, 1, 0), put_tensor(&file, "t", DIMENSIONS(1, UINT64_MAX), 0, 0), put_data(&file, 32, 4);
    gives(&file, "tensor 't': dimension 1 is -1");
    begin(&file, 3, 1, 0), put_tensor(&file, "t", DIMENSIONS(UINT64_C(1) << 32, UINT64_C(1) << 32), 0, 0),
        put_data(&file, 32, 4);
    gives(&file, "tensor 't': F32 [4294967296, 4294967296] has a size of more than 64 bits");
    begin(&file, 3, 1, 0), put_tensor(&file, "t", DIMENSIONS(INT64_MAX), 24, 0), put_data(&file, 32, 4);
    gives(&file, "tensor 't': I8 [9223372036854775807] has a size of more than 64 bits");
    begin(&file, 3, 1, 0), put_tensor(&file, "t", DIMENSIONS(UINT64_C(1) << 61), 0, 0), put_data(&file, 32, 4);
    gives(&file,
          "truncated: 9223372036854775804 of 9223372036854775808 tensor bytes are missing; an interrupted download?");
    begin(&file, 3, 1, 0), put_tensor(&file, "t", DIMENSIONS(UINT64_C(1) << 62), 0, 0), put_data(&file, 32, 4);
    gives(&file, "tensor 't': F32 [4611686018427387904] has a size of more than 64 bits");
    begin(&file, 3, 1, 0), put_tensor(&file, "t", DIMENSIONS(UINT64_C(1) << 62, 4, 0), 0, 0), put_data(&file, 32, 4);
    gives(&file, "tensor 't': F32 [0, 4, 4611686018427387904] has a size of more than 64 bits");
    begin(&file, 3, 1, 0), put_tensor(&file, "t", DIMENSIONS(0, 4, UINT64_C(1) << 62), 0, 0), put_data(&file, 32, 4);
    gives(&file, "ok 1");
    begin(&file, 3, 1, 0), put_tensor(&file, "t", DIMENSIONS(100, 2), 12, 0), put_data(&file, 32, 1024);
    gives(&file, "tensor 't': a row of 100 elements is not a multiple of 256, as Q4_K needs it; download the file "
                 "again, or ask its maker");
    begin(&file, 3, 1, 0), put_string(&file, "t"), put(&file, 0, 4), put(&file, 8, 4), put(&file, 0, 8),
        put_data(&file, 32, 64);
    gives(&file, "tensor 't': a row of 1 elements is not a multiple of 32, as Q8_0 needs it; download the file again, "
                 "or ask its maker");
}

static void offset_attacks(void)
{
    static const uint64_t offsets[] = {0, 1, 16, 64, UINT64_MAX, UINT64_C(1) << 63};
    struct assembly file = {0};
    char expected[128];
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        begin(&file, 3, 2, 0), put_tensor(&file, "a", DIMENSIONS(4), 0, 0),
            put_tensor(&file, "b", DIMENSIONS(4), 0, offsets[i]);
        put_data(&file, 32, 256);
        snprintf(expected, sizeof expected,
                 "tensor 'b': its offset is %llu, but the previous tensor ends at 32; download the file again, or ask "
                 "its maker",
                 (unsigned long long)offsets[i]);
        gives(&file, expected);
    }
    begin(&file, 3, 1, 0), put_tensor(&file, "a", DIMENSIONS(4), 0, 32), put_data(&file, 32, 256);
    gives(&file,
          "tensor 'a': its offset is 32, but the previous tensor ends at 0; download the file again, or ask its maker");
    begin(&file, 3, 1, 0), put_tensor(&file, "a", DIMENSIONS(1000), 0, 0), put_data(&file, 32, 3999);
    gives(&file, "truncated: 1 of 4000 tensor bytes are missing; an interrupted download?");
    begin(&file, 3, 1, 0), put_tensor(&file, "a", DIMENSIONS(UINT64_C(1) << 40), 0, 0), put_data(&file, 32, 0);
    gives(&file, "truncated: 4398046511104 of 4398046511104 tensor bytes are missing; an interrupted download?");
    begin(&file, 3, 3, 0);
    put_tensor(&file, "a", DIMENSIONS(UINT64_C(1) << 60), 24, 0),
        put_tensor(&file, "b", DIMENSIONS(UINT64_C(1) << 60), 24, 1ull << 60);
    put_tensor(&file, "c", DIMENSIONS(UINT64_C(1) << 60), 24, 1ull << 61), put_data(&file, 32, 0);
    gives(&file,
          "truncated: 3458764513820540928 of 3458764513820540928 tensor bytes are missing; an interrupted download?");
}

/* Every cut of a file is refused in one line. */
static void cuts(void)
{
    struct assembly file = {0};
    put_model(&file, 3);
    size_t whole = file.bytes.length, n_refused = 0;
    for (size_t length = 1; length < whole; length++) {
        files_write("cut.gguf", file.bytes.bytes, length);
        const char *text = outcome("cut.gguf");
        n_refused +=
            text_starts_with(text, "cut.gguf: ") && strstr(text, "truncated: ") != NULL && strchr(text, '\n') == NULL;
    }
    CHECK(n_refused == whole - 1);
    files_write("cut.gguf", "", 0);
    CHECK_TEXT(outcome("cut.gguf"), "cut.gguf: the file is empty; an interrupted download?");
    buffer_free(&file.bytes);
}

static void every_type(void)
{
    static const struct {
        unsigned type, elements, bytes;
    } types[] = {{0, 1, 4},      {1, 1, 2},      {2, 32, 18},   {3, 32, 20},    {6, 32, 22},    {7, 32, 24},
                 {8, 32, 34},    {9, 32, 36},    {10, 256, 84}, {11, 256, 110}, {12, 256, 144}, {13, 256, 176},
                 {14, 256, 210}, {15, 256, 292}, {16, 256, 66}, {17, 256, 74},  {18, 256, 98},  {19, 256, 50},
                 {20, 32, 18},   {21, 256, 110}, {22, 256, 82}, {23, 256, 136}, {24, 1, 1},     {25, 1, 2},
                 {26, 1, 4},     {27, 1, 8},     {28, 1, 8},    {29, 256, 56},  {30, 1, 2},     {34, 256, 54},
                 {35, 256, 66},  {39, 32, 17},   {40, 64, 36},  {41, 128, 18},  {42, 64, 18}};
    struct assembly file = {0};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        begin(&file, 3, 1, 0), put_tensor(&file, "t", DIMENSIONS(types[i].elements * 2, 3), types[i].type, 0);
        put_data(&file, 32, types[i].bytes * 6);
        gives(&file, "ok 1");
        begin(&file, 3, 1, 0), put_tensor(&file, "t", DIMENSIONS(types[i].elements * 2, 3), types[i].type, 0);
        put_data(&file, 32, types[i].bytes * 6 - 1);
        char expected[96];
        snprintf(expected, sizeof expected, "truncated: 1 of %u tensor bytes are missing; an interrupted download?",
                 types[i].bytes * 6);
        gives(&file, expected);
    }
}

static void write_part(const char *path, unsigned number, unsigned count, unsigned n_tensors, const char *tensor)
{
    struct assembly file = {0};
    begin(&file, 3, 1, 3);
    put_key(&file, "split.no", 2), put(&file, number, 2);
    put_key(&file, "split.tensors.count", 5), put(&file, n_tensors, 4);
    put_key(&file, "split.count", 2), put(&file, count, 2);
    put_tensor(&file, tensor, DIMENSIONS(1), 24, 0), put_data(&file, 32, 1);
    write_file(&file, path);
    buffer_free(&file.bytes);
}

static void split(void)
{
    write_part("s/m-00001-of-00003.gguf", 0, 3, 3, "a");
    write_part("s/m-00002-of-00003.gguf", 1, 3, 3, "b");
    write_part("s/m-00003-of-00003.gguf", 2, 3, 3, "c");
    CHECK_TEXT(outcome("s"), "ok 3");
    CHECK_TEXT(outcome("s/m-00001-of-00003.gguf"), "ok 3");
    CHECK_TEXT(outcome("s/m-00002-of-00003.gguf"),
               "m-00002-of-00003.gguf: split 2 of 3; name the first split or the directory");
    write_part("s/m-00002-of-00003.gguf", 2, 3, 3, "b");
    CHECK_TEXT(outcome("s"), "m-00002-of-00003.gguf: its header says split 3 of 3, its place is split 2");
    write_part("s/m-00002-of-00003.gguf", 1, 4, 3, "b");
    CHECK_TEXT(
        outcome("s"),
        "m-00002-of-00003.gguf: belongs to another model: it has 4 splits and 3 tensors, the first split says 3 and 3");
    write_part("s/m-00002-of-00003.gguf", 1, 3, 9, "b");
    CHECK_TEXT(
        outcome("s"),
        "m-00002-of-00003.gguf: belongs to another model: it has 3 splits and 9 tensors, the first split says 3 and 3");
    write_part("s/m-00002-of-00003.gguf", 1, 3, 3, "a");
    CHECK_TEXT(outcome("s"), "m-00002-of-00003.gguf: tensor 'a' is also in m-00001-of-00003.gguf");
    files_must(unlink("s/m-00002-of-00003.gguf") == 0, "unlink");
    CHECK_TEXT(outcome("s"), "m-00002-of-00003.gguf is missing: split 2 of 3");
    files_must(unlink("s/m-00001-of-00003.gguf") == 0, "unlink");
    CHECK_TEXT(outcome("s"), "s: the first split m-00001-of-00003.gguf is missing");
    write_part("t/m-00001-of-00002.gguf", 0, 2, 7, "a");
    write_part("t/m-00002-of-00002.gguf", 1, 2, 7, "b");
    CHECK_TEXT(outcome("t"), "m-00001-of-00002.gguf: its 2 splits have 2 tensors, but split.tensors.count is 7");
    write_part("u/other.gguf", 0, 2, 2, "a");
    CHECK_TEXT(outcome("u"), "other.gguf: its header says split 1 of 2, its file name says otherwise");
    write_part("v/one-00001-of-00001.gguf", 0, 1, 1, "a");
    CHECK_TEXT(outcome("v"), "ok 1");
    write_part("v/two.gguf", 0, 0, 1, "a");
    CHECK_TEXT(outcome("v"), "v: this directory contains 2 GGUF models; name one: one-00001-of-00001.gguf, two.gguf");
    CHECK_TEXT(outcome("v/two.gguf"), "ok 1");
    files_write_text("w/m.gguf", "what?");
    CHECK_TEXT(outcome("w/m.gguf"), "m.gguf: not a GGUF file: it does not start with GGUF; download it again, or "
                                    "rename it if it has another format");
}

int main(void)
{
    files_begin();
    for (unsigned version = 1; version <= 3; version++) {
        reads(version, false);
        reads(version, true);
    }
    takes_what_the_reference_takes();
    header_attacks();
    key_attacks();
    name_attacks();
    tensor_attacks();
    offset_attacks();
    cuts();
    every_type();
    split();
    files_remove();
    return check_done();
}
