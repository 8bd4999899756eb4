/* The acceptance of safetensors files. The names in brackets are those of the reference's own tests (safetensors crate,
 * safetensors/src/tensor.rs); what it decides was found by running it, see tests/interop/test_safetensors.py. */
#include "base/text.h"
#include "formats/checkpoint.h"
#include "text/json.h"

#include "tests/unit/check.h"
#include "tests/unit/formats/readers_table.h"
#include "tests/unit/write_safetensors.h"

#include <limits.h>

#define T "{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,4]}"

/* A tensor of that dtype and shape, with those offsets, as the only one. */
#define ONE(dtype, shape, offsets) "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

#define TEXT(text) text, sizeof(text) - 1

struct row {
    const char *name, *header;
    size_t header_length, n_data;
    const char *error; /* what the message holds; NULL: accepted */
};

static const struct row rows[] = {
    {"one tensor", TEXT("{\"a\":" T "}"), 4, NULL},
    {"leading space [test_whitespace_leading_padded_header]", TEXT("  {\"a\":" T "}"), 4, NULL},
    {"leading newline", TEXT("\n{\"a\":" T "}"), 4, NULL},
    {"leading tab", TEXT("\t{\"a\":" T "}"), 4, NULL},
    {"leading byte order mark", TEXT("\xef\xbb\xbf{\"a\":" T "}"), 4, "header: "},
    {"trailing spaces [test_whitespace_padded_header]", TEXT("{\"a\":" T "}    "), 4, NULL},
    {"trailing CR, LF, TAB", TEXT("{\"a\":" T "}\r\n\t"), 4, NULL},
    {"trailing NUL", TEXT("{\"a\":" T "}\0\0"), 4, "header: "},
    {"trailing junk", TEXT("{\"a\":" T "}x"), 4, "header: "},
    {"two objects", TEXT("{\"a\":" T "}{}"), 4, "header: "},
    {"an empty header", TEXT(""), 0, "header: "},
    {"white space only", TEXT("   "), 0, "header: "},
    {"no tensors [test_empty]", TEXT("{}"), 0, NULL},
    {"no tensors and 4 bytes", TEXT("{}"), 4, "4 extra bytes after the last tensor"},
    {"an array", TEXT("[]"), 0, "header: not a JSON object"},
    {"null", TEXT("null"), 0, "header: not a JSON object"},
    {"not JSON [test_invalid_header_not_json]", TEXT("{"), 0, "header: "},
    {"not UTF-8 [test_invalid_header_non_utf8]", TEXT("\xff"), 0, "header: line 1: invalid JSON at offset 0"},

    {"a name twice", TEXT("{\"a\":" T ",\"a\":" T "}"), 4, "'a' appears twice"},
    {"a name twice, the last one valid", TEXT("{\"a\":1,\"a\":" T "}"), 4, "'a': its description is not an object"},
    {"a name twice, the first one empty",
     TEXT("{\"a\":{\"dtype\":\"I32\",\"shape\":[0],\"data_offsets\":[0,0]},\"a\":" T "}"), 4, "'a' appears twice"},
    {"a name twice, once escaped", TEXT("{\"a\":" T ",\"\\u0061\":" T "}"), 4, "'a' appears twice"},

    {"metadata", TEXT("{\"__metadata__\":{\"format\":\"pt\"},\"a\":" T "}"), 4, NULL},
    {"metadata only", TEXT("{\"__metadata__\":{\"format\":\"pt\"}}"), 0, NULL},
    {"empty metadata", TEXT("{\"__metadata__\":{},\"a\":" T "}"), 4, NULL},
    {"metadata twice", TEXT("{\"__metadata__\":{},\"__metadata__\":{},\"a\":" T "}"), 4, "appears twice"},
    {"metadata null", TEXT("{\"__metadata__\":null,\"a\":" T "}"), 4, NULL},
    {"metadata of an integer", TEXT("{\"__metadata__\":{\"k\":1},\"a\":" T "}"), 4,
     "__metadata__: 'k' is not a string"},
    {"metadata of null", TEXT("{\"__metadata__\":{\"k\":null},\"a\":" T "}"), 4, "__metadata__: 'k' is not a string"},
    {"metadata of an object", TEXT("{\"__metadata__\":{\"k\":{}},\"a\":" T "}"), 4,
     "__metadata__: 'k' is not a string"},
    {"metadata as a list", TEXT("{\"__metadata__\":[],\"a\":" T "}"), 4, "__metadata__ is not an object"},
    {"a metadata key twice", TEXT("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"},\"a\":" T "}"), 4, "'k' appears twice"},
    {"a tensor called __metadata__", TEXT("{\"__metadata__\":" T "}"), 4, "__metadata__: 'shape' is not a string"},
    {"__metadata__ spelled with an escape", TEXT("{\"\\u005f_metadata__\":{\"k\":\"v\"},\"a\":" T "}"), 4, NULL},
    {"__metadata__ twice, once escaped", TEXT("{\"\\u005f_metadata__\":{},\"__metadata__\":{},\"a\":" T "}"), 4,
     "appears twice"},

    {"a dimension 4.0", TEXT(ONE("U8", "[4.0]", "[0,4]")), 4,
     "tensor 'a': shape contains an element that is not an unsigned 64-bit integer"},
    {"a dimension 4e0", TEXT(ONE("U8", "[4e0]", "[0,4]")), 4, "shape contains"},
    {"a dimension -0", TEXT(ONE("U8", "[-0]", "[0,0]")), 0, "shape contains"},
    {"a dimension -1", TEXT(ONE("U8", "[-1]", "[0,0]")), 0, "shape contains"},
    {"a dimension 04", TEXT(ONE("U8", "[04]", "[0,4]")), 4, "header: "},
    {"a dimension +4", TEXT(ONE("U8", "[+4]", "[0,4]")), 4, "header: "},
    {"a dimension \"4\"", TEXT(ONE("U8", "[\"4\"]", "[0,4]")), 4, "shape contains"},
    {"a dimension 2^64", TEXT(ONE("U8", "[18446744073709551616]", "[0,4]")), 4, "shape contains"},
    {"a dimension 2^64 - 1", TEXT(ONE("U8", "[18446744073709551615]", "[0,4]")), 4, "a size of more than 64 bits"},
    {"an offset 4.0", TEXT(ONE("U8", "[4]", "[0,4.0]")), 4, "data_offsets contains"},
    {"an offset -0", TEXT(ONE("U8", "[4]", "[-0,4]")), 4, "data_offsets contains"},
    {"an offset 2^64", TEXT(ONE("U8", "[4]", "[0,18446744073709551616]")), 4, "data_offsets contains"},

    {"one offset", TEXT(ONE("U8", "[4]", "[4]")), 4, "data_offsets has 1 numbers, expected 2"},
    {"three offsets", TEXT(ONE("U8", "[4]", "[0,4,4]")), 4, "data_offsets has 3 numbers"},
    {"offsets in an object", TEXT(ONE("U8", "[4]", "{\"0\":0,\"1\":4}")), 4, "data_offsets is not an array"},
    {"reversed offsets", TEXT(ONE("U8", "[4]", "[4,0]")), 4, "data_offsets [4, 0] are reversed"},
    {"a hole at the start", TEXT(ONE("U8", "[4]", "[1,5]")), 5, "data_offsets [1, 5] leave a gap"},
    {"a hole in the middle", TEXT("{\"a\":" T ",\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[5,6]}}"), 6,
     "tensor 'b': data_offsets [5, 6] leave a gap"},
    {"tensors that overlap", TEXT("{\"a\":" T ",\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}"), 6,
     "tensor 'b': data_offsets [2, 6] overlap"},
    {"tensors on the same bytes [test_json_attack]", TEXT("{\"a\":" T ",\"b\":" T ",\"c\":" T "}"), 4, "overlap"},
    {"a byte missing", TEXT("{\"a\":" T "}"), 3, "truncated: 1 of 4 tensor bytes are missing"},
    {"2 bytes missing [test_metadata_incomplete_buffer]", TEXT("{\"a\":" T "}"), 2,
     "truncated: 2 of 4 tensor bytes are missing"},
    {"a byte too many", TEXT("{\"a\":" T "}"), 5, ": 1 extra bytes after the last tensor"},
    {"8 bytes too many [test_metadata_incomplete_buffer]", TEXT("{\"a\":" T "}"), 12,
     ": 8 extra bytes after the last tensor"},
    {"offsets shorter than the shape [test_invalid_info]", TEXT(ONE("I32", "[2,2]", "[0,4]")), 4,
     "tensor 'a': data_offsets [0, 4] do not match I32 [2, 2] (16 bytes)"},
    {"offsets longer than the shape", TEXT(ONE("I32", "[1]", "[0,8]")), 8, "do not match I32 [1] (4 bytes)"},

    {"an unknown field",
     TEXT("{\"a\":{\"dtype\":\"I32\",\"extra\":[{\"x\":[1,2.5,null]}],\"shape\":[1],\"data_offsets\":[0,4]}}"), 4,
     NULL},
    {"a dtype twice", TEXT("{\"a\":{\"dtype\":\"I32\",\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,4]}}"), 4,
     "appears twice"},
    {"a shape twice", TEXT("{\"a\":{\"dtype\":\"I32\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,4]}}"), 4,
     "appears twice"},
    {"no dtype", TEXT("{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}"), 4, "tensor 'a': no dtype"},
    {"no shape", TEXT("{\"a\":{\"dtype\":\"I32\",\"data_offsets\":[0,4]}}"), 4, "tensor 'a': no shape"},
    {"no data_offsets", TEXT("{\"a\":{\"dtype\":\"I32\",\"shape\":[1]}}"), 4, "tensor 'a': no data_offsets"},
    {"a tensor as an array", TEXT("{\"a\":[\"I32\",[1],[0,4]]}"), 4, "tensor 'a': its description is not an object"},
    {"a tensor that is null", TEXT("{\"a\":null}"), 0, "tensor 'a': its description is not an object"},
    {"a dtype as an object", TEXT("{\"a\":{\"dtype\":{\"I32\":null},\"shape\":[1],\"data_offsets\":[0,4]}}"), 4,
     "dtype is not a string"},
    {"an unknown dtype", TEXT(ONE("I33", "[1]", "[0,4]")), 4, "unknown dtype 'I33'"},
    {"a dtype of wfs, not of the format", TEXT(ONE("C128", "[1]", "[0,16]")), 16, "unknown dtype 'C128'"},
    {"a dtype in lower case", TEXT(ONE("i32", "[1]", "[0,4]")), 4, "unknown dtype 'i32'"},
    {"a dtype with a NUL after it", TEXT(ONE("I32\\u0000", "[1]", "[0,4]")), 4, "unknown dtype"},
    {"an integer as dtype", TEXT("{\"a\":{\"dtype\":4,\"shape\":[1],\"data_offsets\":[0,4]}}"), 4,
     "dtype is not a string"},
    {"a dtype spelled with an escape", TEXT(ONE("\\u004932", "[1]", "[0,4]")), 4, NULL},

    {"a scalar", TEXT(ONE("I32", "[]", "[0,4]")), 4, NULL},
    {"an empty tensor [test_zero_sized_tensor]", TEXT(ONE("I32", "[2,0,3]", "[0,0]")), 0, NULL},
    {"0 before an overflow", TEXT(ONE("I32", "[0,9223372036854775808,4]", "[0,0]")), 0, NULL},
    {"0 after an overflow", TEXT(ONE("I32", "[9223372036854775808,4,0]", "[0,0]")), 0, "a size of more than 64 bits"},
    {"bits that overflow", TEXT(ONE("F32", "[576460752303423488]", "[0,2305843009213693952]")), 0,
     "a size of more than 64 bits"},
    {"elements that overflow [test_validation_overflow]", TEXT(ONE("I32", "[2,18446744073709551614]", "[0,16]")), 16,
     "a size of more than 64 bits"},
    {"bytes that overflow [test_validation_overflow]", TEXT(ONE("I32", "[2,9223372036854775807]", "[0,16]")), 16,
     "a size of more than 64 bits"},
    {"a product that wraps to 4", TEXT(ONE("U8", "[4194305,4194305,211106198978564]", "[0,4]")), 4,
     "a size of more than 64 bits"},
    {"an end that wraps", TEXT(ONE("U8", "[4]", "[18446744073709551612,18446744073709551615]")), 4, "leave a gap"},
    {"an empty tensor between two",
     TEXT("{\"a\":" T ",\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]},"
          "\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[4,5]}}"),
     5, NULL},
    {"an empty tensor inside another",
     TEXT("{\"a\":" T ",\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]}}"), 4, "overlap"},
    {"an empty tensor after the end",
     TEXT("{\"a\":" T ",\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[5,5]}}"), 4, "leave a gap"},
    {"F4 [4] [test_serialization_fp4]", TEXT(ONE("F4", "[4]", "[0,2]")), 2, NULL},
    {"F4 [3] [test_serialization_fp4_misaligned]", TEXT(ONE("F4", "[3]", "[0,2]")), 2,
     "F4 [3] is not a whole number of bytes"},
    {"F4 rows of half a byte", TEXT(ONE("F4", "[2,3]", "[0,3]")), 3, NULL},
    {"F4 with too few bytes [test_serialization_fp4_invalid]", TEXT(ONE("F4", "[4]", "[0,1]")), 1,
     "do not match F4 [4] (2 bytes)"},
    {"F6 [4]", TEXT(ONE("F6_E2M3", "[4]", "[0,3]")), 3, NULL},
    {"F6 [5]", TEXT(ONE("F6_E3M2", "[5]", "[0,4]")), 4, "F6_E3M2 [5] is not a whole number of bytes"},

    {"an empty name", TEXT("{\"\":" T "}"), 4, NULL},
    {"a name with a NUL", TEXT("{\"a\\u0000b\":" T "}"), 4, NULL},
    {"a name like a path", TEXT("{\"../../etc/x\":" T "}"), 4, NULL},
    {"a raw control byte", TEXT("{\"a\nb\":" T "}"), 4, "header: "},
    {"a lone surrogate", TEXT("{\"\\ud800\":" T "}"), 4, "surrogate"},
    {"a bad escape", TEXT("{\"\\x61\":" T "}"), 4, "header: "},
    {"an overlong form", TEXT("{\"\xc0\xaf\":" T "}"), 4, "invalid UTF-8"},
    {"the bytes of a surrogate", TEXT("{\"\xed\xa0\x80\":" T "}"), 4, "invalid UTF-8"},
    {"a surrogate pair", TEXT("{\"\\ud83d\\ude00\":" T "}"), 4, NULL},
    {"an escaped slash", TEXT("{\"a\\/b\":" T "}"), 4, NULL},
    {"a trailing comma", TEXT("{\"a\":" T ",}"), 4, "header: "},
    {"a comment", TEXT("{\"a\":" T "/**/}"), 4, "header: "},
    {"single quotes", TEXT("{'a':" T "}"), 4, "header: "},
    {"NaN", TEXT("{\"a\":NaN}"), 0, "header: "},
};

static const struct open_options strict = {.format = NULL};

static const struct checkpoint *open_row(const struct row *row, struct error *error)
{
    files_write_safetensors("model.safetensors", row->header, row->header_length, row->n_data);
    return checkpoint_open("model.safetensors", readers, &strict, error);
}

static void acceptance(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        struct error error = {""};
        const struct checkpoint *checkpoint = open_row(row, &error);
        bool as_wanted = row->error == NULL ? checkpoint != NULL
                                            : checkpoint == NULL && strstr(error.message, row->error) != NULL &&
                                                  text_starts_with(error.message, "model.safetensors: ");
        if (!CHECK_NAMED(as_wanted, row->name))
            fprintf(stderr, "  %s\n", checkpoint != NULL ? "accepted" : error.message);
        checkpoint_close(checkpoint);
    }
}

/* Files whose first 8 bytes are wrong; the name alone says that they should be safetensors. */
static void beginnings(void)
{
    static const struct {
        const char *name, *bytes;
        size_t length;
        const char *error;
    } files[] = {
        {"an empty file [test_header_too_small]", "", 0, "the file is empty; an interrupted download?"},
        {"7 bytes", "\x02\0\0\0\0\0\0", 7, "it has 7 of the first 8 bytes"},
        {"a length and nothing more [test_invalid_header_length]", "\x02\0\0\0\0\0\0\0", 8,
         "a header of 2 bytes, but the file has 8"},
        {"a length beyond the file by one", "\x03\0\0\0\0\0\0\0{}", 10, "a header of 3 bytes, but the file has 10"},
        {"a length over the limit [test_header_too_large]", "\x3c\0\0\0\0\xff\xff\xff{}", 10, "the limit is 100000000"},
        {"a length that wraps", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "the limit is 100000000"},
        {"a length that wraps with the 8 bytes", "\xf8\xff\xff\xff\xff\xff\xff\xff{}", 10, "the limit is 100000000"},
        {"a length of 2^63", "\0\0\0\0\0\0\0\x80{}", 10, "the limit is 100000000"},
        {"a header of the limit in a small file", "\x00\xe1\xf5\x05\0\0\0\0{}", 10,
         "a header of 100000000 bytes, but the file has 10"},
        {"a header of one more", "\x01\xe1\xf5\x05\0\0\0\0{}", 10, "header too long: 100000001 bytes"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct error error = {""};
        files_write("model.safetensors", files[i].bytes, files[i].length);
        const struct checkpoint *checkpoint = checkpoint_open("model.safetensors", readers, &strict, &error);
        if (!CHECK_NAMED(checkpoint == NULL && strstr(error.message, files[i].error) != NULL, files[i].name))
            fprintf(stderr, "  %s\n", error.message);
        checkpoint_close(checkpoint);
    }
}

static bool accepts(const char *header, size_t length, size_t n_data)
{
    struct error error;
    const struct row row = {.header = header, .header_length = length, .n_data = n_data};
    const struct checkpoint *checkpoint = open_row(&row, &error);
    checkpoint_close(checkpoint);
    return checkpoint != NULL;
}

static bool accepts_rank(int rank)
{
    char header[1024] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1";
    for (int i = 1; i < rank; i++)
        strcat(header, ",1");
    strcat(header, "],\"data_offsets\":[0,1]}}");
    return accepts(header, strlen(header), 1);
}

static bool accepts_name(size_t length)
{
    static char header[TENSOR_MAX_NAME + 100];
    strcpy(header, "{\"");
    memset(header + 2, 'n', length);
    strcpy(header + 2 + length, "\":" T "}");
    return accepts(header, strlen(header), 4);
}

/* The extra field stands two deep itself. */
static bool accepts_depth(size_t depth)
{
    char header[1024] = "{\"a\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,4],\"extra\":";
    size_t length = strlen(header);
    memset(header + length, '[', depth - 2);
    memset(header + length + depth - 2, ']', depth - 2);
    strcpy(header + length + 2 * (depth - 2), "}}");
    return accepts(header, strlen(header), 4);
}

/* An empty object, padded with spaces. */
static bool accepts_header_of(size_t length)
{
    char *header = malloc(length);
    memset(header, ' ', length);
    memcpy(header, "{}", 2);
    bool accepted = accepts(header, length, 0);
    free(header);
    return accepted;
}

static void limits(void)
{
    CHECK(accepts_rank(64));
    CHECK(!accepts_rank(65));
    CHECK(accepts_name(TENSOR_MAX_NAME));
    CHECK(!accepts_name(TENSOR_MAX_NAME + 1));
    CHECK(accepts_depth(JSON_MAX_DEPTH));
    CHECK(!accepts_depth(JSON_MAX_DEPTH + 1));
    CHECK(accepts_header_of(100000000));
    CHECK(!accepts_header_of(100000001));
}

static void trailing(void)
{
    static const struct open_options lenient = {.allow_trailing = true};
    struct error error;
    files_write_safetensors("model.safetensors", TEXT("{\"a\":" T "}"), 9);
    const struct checkpoint *checkpoint = checkpoint_open("model.safetensors", readers, &lenient, &error);
    CHECK(checkpoint != NULL && checkpoint_notes(checkpoint) == 1);
    CHECK_TEXT(checkpoint_note_at(checkpoint, 0).text, "model.safetensors: ignored 5 bytes after the last tensor");
    checkpoint_close(checkpoint);
    files_write_safetensors("model.safetensors", TEXT("{\"a\":" T "}"), 3);
    CHECK(checkpoint_open("model.safetensors", readers, &lenient, &error) == NULL);
}

static const char order_header[] = "{\"z\":{\"dtype\":\"BF16\",\"shape\":[2,1],\"data_offsets\":[4,8]},"
                                   "\"__metadata__\":{\"format\":\"pt\",\"nul\":\"a\\u0000b\"},"
                                   "\"\\ud83d\\ude00\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[8,9]},"
                                   "\"\xef\xbf\xbd\":{\"dtype\":\"I8\",\"shape\":[0,3],\"data_offsets\":[4,4]},"
                                   "\"layers.10\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]},"
                                   "\"layers.2\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]},"
                                   "\"layers.1\\u0000\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[3,4]}}";

/* Sorted by code point, not as UTF-16 would (U+FFFD before U+1F600), whatever the order of header and data. */
static void order(void)
{
    static const struct {
        const char *name;
        size_t name_length;
        const char *dtype;
        unsigned rank;
        uint64_t offset, length;
    } expected[] = {
        {TEXT("layers.1\0"), "BOOL", 1, 3, 1}, {TEXT("layers.10"), "U8", 1, 2, 1},
        {TEXT("layers.2"), "F16", 1, 0, 2},    {TEXT("z"), "BF16", 2, 4, 4},
        {TEXT("\xef\xbf\xbd"), "I8", 2, 4, 0}, {TEXT("\xf0\x9f\x98\x80"), "U8", 0, 8, 1},
    };
    struct error error = {""};
    files_write_safetensors("model.safetensors", TEXT(order_header), 9);
    const struct checkpoint *checkpoint = checkpoint_open("model.safetensors", readers, &strict, &error);
    if (!CHECK(checkpoint != NULL && checkpoint->tensors->n_tensors == 6)) {
        fprintf(stderr, "  %s\n", error.message);
        return;
    }
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++) {
        const struct tensor *tensor = &checkpoint->tensors->tensors[i];
        CHECK(tensor->name_length == expected[i].name_length &&
              memcmp(tensor->name, expected[i].name, tensor->name_length) == 0);
        CHECK_TEXT(tensor->dtype->name, expected[i].dtype);
        CHECK(tensor->rank == expected[i].rank && tensor->length == expected[i].length);
        CHECK(tensor->offset == 8 + sizeof order_header - 1 + expected[i].offset);
        CHECK(tensor_set_find(checkpoint->tensors, expected[i].name, expected[i].name_length) == tensor);
    }
    CHECK(checkpoint->tensors->tensors[3].shape[0] == 2 && checkpoint->tensors->tensors[3].shape[1] == 1);
    CHECK(checkpoint->metadata.n_kvs == 1 && memcmp(checkpoint->metadata.kvs[0].value.bytes + 8, "pt", 2) == 0);
    CHECK(checkpoint_notes(checkpoint) == 1);
    CHECK_TEXT(checkpoint->format, "safetensors");
    checkpoint_close(checkpoint);
}

/* Shapes are told apart however many there are; the tensors near each other that have the same one share it. */
static void shapes(void)
{
    enum { N_TENSORS = 60, MOST_SHAPES = 12 };
    for (unsigned n_shapes = 1; n_shapes <= MOST_SHAPES; n_shapes++) {
        char header[8192] = "{", *out = header + 1;
        struct error error = {""};
        for (unsigned i = 0; i < N_TENSORS; i++)
            out += sprintf(out, "%s\"%02u\":{\"dtype\":\"U8\",\"shape\":[%s0,%u],\"data_offsets\":[0,0]}",
                           i > 0 ? "," : "", i, i % n_shapes % 3 == 0 ? "1," : "", i % n_shapes);
        strcpy(out, "}");
        files_write_safetensors("model.safetensors", header, strlen(header), 0);
        const struct checkpoint *checkpoint = checkpoint_open("model.safetensors", readers, &strict, &error);
        if (!CHECK(checkpoint != NULL && checkpoint->tensors->n_tensors == N_TENSORS))
            return;
        bool right = true, shared = true;
        for (unsigned i = 0; i < N_TENSORS; i++) {
            const struct tensor *tensor = &checkpoint->tensors->tensors[i];
            unsigned rank = i % n_shapes % 3 == 0 ? 3 : 2;
            right &= tensor->rank == rank && tensor->shape[rank - 1] == i % n_shapes && tensor->shape[rank - 2] == 0 &&
                     (rank == 2 || tensor->shape[0] == 1);
            shared &= i < n_shapes || tensor->shape == tensor[-(ptrdiff_t)n_shapes].shape;
        }
        CHECK(right && (shared || n_shapes > 4));
        checkpoint_close(checkpoint);
    }
}

/* Every dtype of the format, with 8 elements. */
static void dtypes_accepted(void)
{
    static const struct {
        const char *name;
        size_t n_bytes;
    } all[] = {
        {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
        {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},        {"U16", 16},        {"F16", 16},
        {"BF16", 16},   {"I32", 32},    {"U32", 32},    {"F32", 32},        {"F8_E4M3FNUZ", 8}, {"C64", 64},
        {"F64", 64},    {"I64", 64},    {"U64", 64},    {"F8_E5M2FNUZ", 8},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char header[128];
        snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"%s\",\"shape\":[2,4],\"data_offsets\":[0,%zu]}}",
                 all[i].name, all[i].n_bytes);
        CHECK_NAMED(accepts(header, strlen(header), all[i].n_bytes), all[i].name);
    }
}

int main(void)
{
    files_begin();
    acceptance();
    beginnings();
    limits();
    trailing();
    order();
    shapes();
    dtypes_accepted();
    files_remove();
    return check_done();
}
