/* Flax checkpoints: MessagePack written by hand. Expected values are those of flax.serialization for the same bytes,
 * where it takes them. */
#include "tests/unit/formats/torch/archive.h"

static const struct open_options defaults, trailing = {.allow_trailing = true};

/* Arrays of U8: an extension's content is [shape, "uint8", elements]. */
#define UINT8           "\xa5uint8"
#define ARRAY_2(a, b)   "\xc7\x0d\x01\x93\x91\x02" UINT8 "\xc4\x02" a b
#define SCALAR(type, a) "\xc7\x0b" type "\x93\x90" UINT8 "\xc4\x01" a
#define CHUNKED         "\xb9__msgpack_chunked_array__"

/* A text with NULs in it. */
#define BYTES(text) text, sizeof text - 1

static const struct {
    const char *bytes;
    size_t length;
    const char *says;
} rows[] = {
    {BYTES("\x81\xa1w" ARRAY_2("\1", "\2")), "w U8 [2] 1 2"},
    {BYTES("\x81\xa1s" SCALAR("\3", "\7")), "s U8 [] 7"},
    {BYTES("\xde\0\1\xa1w" ARRAY_2("\1", "\2")), "w U8 [2] 1 2"},
    {BYTES("\xdf\0\0\0\1\xa1w" ARRAY_2("\1", "\2")), "w U8 [2] 1 2"},
    {BYTES("\x81\xd9\1w" ARRAY_2("\1", "\2")), "w U8 [2] 1 2"},
    {BYTES("\x82\xa1"
           "a\x82\xa1"
           "b" ARRAY_2("\1", "\2") "\xa1"
                                   "c\x80\xa1"
                                   "d" SCALAR("\1", "\3")),
     "a.b U8 [2] 1 2\nd U8 [] 3"},
    {BYTES("\x81\xa1"
           "a\x92" SCALAR("\1", "\4") SCALAR("\1", "\5")),
     "a.0 U8 [] 4\na.1 U8 [] 5"},
    {BYTES("\x81\xa1"
           "a\x81\x03" SCALAR("\1", "\4")),
     "a.3 U8 [] 4"},
    {BYTES("\x81\xa1"
           "a\x81\xa0" SCALAR("\1", "\4")),
     "a. U8 [] 4"},

    {BYTES("\x82\xa0\x01\xa1w" ARRAY_2("\1", "\2")), "w U8 [2] 1 2"},
    {BYTES("\x81\xa0" SCALAR("\1", "\4")), " U8 [] 4"},

    /* The widest spellings. */
    {BYTES("\x81\xdb\0\0\0\1w\xc9\0\0\0\x24\1\xdd\0\0\0\3\xdd\0\0\0\1\xcf\0\0\0\0\0\0\0\2\xdb\0\0\0\5uint8\xc6\0\0\0\2"
           "\1\2"),
     "w U8 [2] 1 2"},
    {BYTES("\x81\xa1w\xc7\x12\1\x93\x91\xcd\0\1\xa8"
           "bfloat16\xc4\2\x80\x3f"),
     "w BF16 [1] 1"},
    {BYTES("\x81\xa1w\xc7\x0e\1\x93\x91\1\xa7"
           "float16\xa2\0\x3c"),
     "w F16 [1] 1"}, /* text for bytes, of old files */
    {BYTES("\x81\xa1w\xc7\x0c\1\x93\x91\2\xa4"
           "int4\xc4\2\1\xff"),
     "w I8 [2] 1 -1"},

    /* Arrays in pieces. */
    {BYTES("\x81\xa1w\x83" CHUNKED "\xc3\xa5shape\x82\xa1"
           "0\2\xa1"
           "1\2\xa6"
           "chunks\x82\xa1"
           "0" ARRAY_2("\1", "\2") "\xa1"
                                   "1" ARRAY_2("\3", "\4")),
     "w U8 [2, 2] 1 2 3 4"},
    {BYTES("\x81\xa1w\x83\xa6"
           "chunks\x82\xa1"
           "1" ARRAY_2("\3", "\4") "\xa1"
                                   "0" ARRAY_2("\1", "\2") "\xa5shape\x82\xa1"
                                                           "1\2\xa1"
                                                           "0\2" CHUNKED "\xc3"),
     "w U8 [2, 2] 1 2 3 4"},
    {BYTES("\x81\xa1w\x83" CHUNKED "\xc3\xa5shape\x81\xa1"
           "0\3\xa6"
           "chunks\x81\xa1"
           "0" ARRAY_2("\1", "\2")),
     "x.msgpack: offset 4: an array of 3 elements, but its pieces have 2"},
    {BYTES("\x81\xa1w\x83" CHUNKED "\xc3\xa5shape\x81\xa1"
           "0\2\xa6"
           "chunks\x81\xa1"
           "1" ARRAY_2("\1", "\2")),
     "x.msgpack: offset 49: an array in pieces whose keys are not 0, 1 and so on"},
    {BYTES("\x81\xa1w\x83" CHUNKED "\xc3\xa5shape\x81\xa1"
           "0\2\xa6"
           "chunks\x81\xa2"
           "00" ARRAY_2("\1", "\2")),
     "x.msgpack: offset 49: an array in pieces whose keys are not 0, 1 and so on"},
    {BYTES("\x81\xa1w\x83" CHUNKED "\xc3\xa5shape\x81\xa1"
           "0\4\xa6"
           "chunks\x82\xa1"
           "0" ARRAY_2("\1", "\2") "\xa1"
                                   "0" ARRAY_2("\1", "\2")),
     "x.msgpack: offset 67: an array in pieces with a piece that is not an array, or two of one key"},
    {BYTES("\x81\xa1w\x83" CHUNKED "\xc3\xa5shape\x80\xa6"
           "chunks\x80"),
     "x.msgpack: offset 4: an array in pieces without a piece"},
    {BYTES("\x81\xa1w\x83" CHUNKED "\xc3\xa5shape\x80\xa5"
           "other\x80"),
     "x.msgpack: offset 4: an array in pieces with other keys than shape and chunks"},
    {BYTES("\x82\xa5shape" ARRAY_2("\1", "\2") "\xa6"
                                               "chunks" ARRAY_2("\3", "\4")),
     "shape U8 [2] 1 2\nchunks U8 [2] 3 4"},

    /* Faults. */
    {BYTES("\x81\xa1w" ARRAY_2("\1", "\2") "x"),
     "x.msgpack: 1 extra bytes after the last array; -o allow_trailing ignores them"},
    {BYTES("\x81\xa1w\x01"), "x.msgpack: a MessagePack file without arrays"},
    {BYTES("\x91" ARRAY_2("\1", "\2")), "x.msgpack: offset 0: not a Flax checkpoint: it does not begin with a map"},
    {BYTES("\x82\xa1w" ARRAY_2("\1", "\2")),
     "x.msgpack: offset 19: truncated: the value needs more bytes than are left"},
    {BYTES("\x81\xa1w\xc7\x0d\x01\x93\x91\x02" UINT8 "\xc4\x02\1"),
     "x.msgpack: offset 3: truncated: the value needs more bytes than are left"},
    {BYTES("\xdf\xff\xff\xff\xff\xa1w"), "x.msgpack: offset 0: truncated: the value needs more bytes than are left"},
    {BYTES("\x81\xc1\1"), "x.msgpack: offset 1: 0xc1 begins no value"},
    {BYTES("\x81\xc0\1"), "x.msgpack: offset 1: a key that is not a text"},
    {BYTES("\x82\xa1w" ARRAY_2("\1", "\2") "\xa1w" ARRAY_2("\1", "\2")), "x.msgpack: tensor 'w' is also in x.msgpack"},
    {BYTES("\x81\xa1w\xc7\x0d\x01\x93\x91\x03" UINT8 "\xc4\x02\1\2"),
     "x.msgpack: offset 15: an array with 2 bytes of elements, but its shape needs 3"},
    {BYTES("\x81\xa1w\xc7\x0d\x01\x93\x91\xff" UINT8 "\xc4\x02\1\2"),
     "x.msgpack: offset 7: an array whose shape has an element that is not a number >= 0"},
    {BYTES("\x81\xa1w\xc7\x0d\x01\x93\x91\x02\xa5"
           "uint9\xc4\x02\1\2"),
     "x.msgpack: offset 9: an array of the unknown dtype 'uint9'"},
    {BYTES("\x81\xa1w\xc7\x0e\x01\x93\x91\x02" UINT8 "\xc4\x02\1\2\0"),
     "x.msgpack: offset 19: an array with bytes after its elements"},
    {BYTES("\x81\xa1w\xd5\x01\x91\1"), "x.msgpack: offset 5: an array that is not a list of shape, dtype and elements"},
};

static void check(const char *bytes, size_t length, const struct open_options *options, const char *says)
{
    files_write("x.msgpack", bytes, length);
    char *described = archive_describe("x.msgpack", options);
    CHECK_TEXT(described, says);
    free(described);
}

static void check_depth(unsigned depth, const char *says)
{
    struct buffer file = {0};
    for (unsigned i = 0; i < depth; i++)
        buffer_append(&file,
                      "\x81\xa1"
                      "a",
                      3);
    buffer_append(&file, SCALAR("\1", "\1"), 14);
    files_write("x.msgpack", file.bytes, file.length);
    char *described = archive_describe("x.msgpack", &defaults);
    CHECK_NAMED(strstr(described, says) != NULL, says);
    free(described);
    buffer_free(&file);
}

static void check_metadata(void)
{
    static const char bytes[] = "\x87\xa1w" ARRAY_2("\1", "\2") "\xa1"
                                                                "a\x05\xa1"
                                                                "b\xff\xa1"
                                                                "c\xc3\xa1"
                                                                "d\xcb\x3f\xf8\0\0\0\0\0\0"
                                                                "\xa1"
                                                                "e\xa2hi\xa1"
                                                                "f\xc0";
    static const char *const expected[][2] = {{"a", "5"}, {"b", "-1"}, {"c", "true"}, {"d", "1.5"}, {"e", "hi"}};
    struct error error;
    size_t length;
    files_write("x.msgpack", bytes, sizeof bytes - 1);
    const struct checkpoint *checkpoint = checkpoint_open("x.msgpack", readers, &defaults, &error);
    CHECK(checkpoint != NULL && checkpoint->metadata.n_kvs == 5);
    for (size_t i = 0; i < 5; i++)
        CHECK_TEXT(gguf_get_string(&checkpoint->metadata, expected[i][0], checkpoint->arena, &length, &error),
                   expected[i][1]);
    checkpoint_close(checkpoint);
}

int main(void)
{
    files_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(rows[i].bytes, rows[i].length, &defaults, rows[i].says);
    check(BYTES("\x81\xa1w" ARRAY_2("\1", "\2") "x"), &trailing, "w U8 [2] 1 2");
    check_depth(64, "a.a U8 [] 1");
    check_depth(65, "maps are nested more than 64 deep");
    check_metadata();
    files_remove();
    return check_done();
}
