/* What a pickle holds besides tensors, as JSON. The pickles are those of Python's pickle module; expected texts are
 * those of json.dumps(), isoformat() and str() for the same objects. */
#include "formats/torch/tensors.h"

#include "tests/unit/check.h"

/* A pickle and its length; literals may hold NULs. */
#define BYTES(literal) literal, sizeof(literal) - 1

static const struct {
    const char *bytes;
    size_t length;
    const char *json;
} rows[] = {
    /* Values of JSON, as json.dumps() writes them. */
    {BYTES("(dVa\nNsVb\nI01\nsVc\nI00\nsVd\nI-7\nsVe\n(lI1\na(lF2.5\naVx\naasVf\n(dsVg\n(ls."),
     "{\"a\":null,\"b\":true,\"c\":false,\"d\":-7,\"e\":[1,[2.5,\"x\"]],\"f\":{},\"g\":[]}"},
    {BYTES("}(X\x01\x00\x00\x00"
           "aNX\x01\x00\x00\x00"
           "b\x88X\x01\x00\x00\x00"
           "c\x89X\x01\x00\x00\x00"
           "dJ\xf9\xff\xff\xffX\x01\x00\x00\x00"
           "e](K\x01](G@\x04\x00\x00\x00\x00\x00\x00X\x01\x00\x00\x00xeeX\x01\x00\x00\x00"
           "f}X\x01\x00\x00\x00g]u."),
     "{\"a\":null,\"b\":true,\"c\":false,\"d\":-7,\"e\":[1,[2.5,\"x\"]],\"f\":{},\"g\":[]}"},
    {BYTES("](G?\xb9\x99\x99\x99\x99\x99\x9aG\xc0\x00\x00\x00\x00\x00\x00\x00G~7\xe4<"
           "\x88\x00u\x9cG\x00\x00\x00\x00\x00\x00\x00\x01G?\xd3"
           "333334\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"
           "e."),
     "[0.1,-2.0,1e+300,5e-324,0.30000000000000004,9223372036854775807,-9223372036854775808]"},
    {BYTES("}X\x09\x00\x00\x00\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80X\x0c\x00\x00\x00\"quoted\" \\ \ns."),
     "{\"é€😀\":\"\\\"quoted\\\" \\\\ \\n\"}"},
    {BYTES("K\x01K\x02\x85)\x87."), "[1,[2],[]]"},
    {BYTES("ccollections\nOrderedDict\n)R(X\x01\x00\x00\x00"
           "bK\x01X\x01\x00\x00\x00"
           "a]Nau."),
     "{\"b\":1,\"a\":[null]}"},
    /* Keys that are not texts, as str() makes texts of them. */
    {BYTES("}(K\x01X\x03\x00\x00\x00oneJ\xfe\xff\xff\xffX\x03\x00\x00\x00twoX\x00\x00\x00\x00K\x00u."),
     "{\"1\":\"one\",\"-2\":\"two\",\"\":0}"},
    {BYTES("}(\x88K\x01NK\x02u."), "{\"True\":1,\"None\":2}"},
    {BYTES("}(K\x01K\x02\x86K\x03G?\xe0\x00\x00\x00\x00\x00\x00K\x04u."), "{\"(1, 2)\":3,\"0.5\":4}"},
    {BYTES("}C\x03rawK\x01s."), "{\"raw\":1}"},
    /* What JSON has no number for. */
    {BYTES("](G\x7f\xf8\x00\x00\x00\x00\x00\x00G\x7f\xf0\x00\x00\x00\x00\x00\x00G\xff\xf0\x00\x00\x00\x00\x00\x00"
           "e."),
     "[\"nan\",\"inf\",\"-inf\"]"},
    {BYTES("]\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00"
           "a."),
     "[\"9223372036854775808\"]"},
    {BYTES("]\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\xff"
           "a."),
     "[\"-9223372036854775809\"]"},
    {BYTES("]\x8a*\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x8f.\xa8\x08"
           "C\xb2\xaa|\x1a!\x8e@\xce\x8a\xf3\x0b\xce\xc4\x84'\x0b\xeb|\xc3\x94%\xadI\x12"
           "a."),
     "[\"10000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\"]"},
    {BYTES("]\x8a*\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0p\xd1W\xf7\xbcMU\x83\xe5\xdeq\xbf"
           "1u\x0c\xf4"
           "1;{\xd8\xf4\x14\x83<k\xdaR\xb6\xed"
           "a."),
     "[\"-10000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\"]"},
    {BYTES("]\x8a?"
           "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
           "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
           "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
           "a."),
     "[\"26187124863169134960105517574620793217733136368344518315866330944769070371237396439066160738607233257207093473"
     "020480568073738052367083144426628220715007\"]"},
    {BYTES("(lL18446744073709551616L\naL-18446744073709551616L\na."),
     "[\"18446744073709551616\",\"-18446744073709551616\"]"},
    {BYTES("]\x8a"
           "B\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
           "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
           "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"
           "a."),
     "[\"an integer of 66 bytes\"]"},
    /* Bytes: hexadecimal, the first 64 of them. */
    {BYTES("C\x05"
           "abc\x00\xff."),
     "{\"bytes\":\"61626300ff\",\"length\":5}"},
    {BYTES("c_codecs\nencode\nX\x06\x00\x00\x00"
           "abc\x00\xc3\xbfX\x06\x00\x00\x00latin1\x86R."),
     "{\"bytes\":\"61626300ff\",\"length\":5}"},
    {BYTES("CF\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\n\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19"
           "\x1a\x1b\x1c\x1d\x1e\x1f !\"#$%&'()*+,-./0123456789:;<=>?@ABCDE."),
     "{\"bytes\":"
     "\"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363"
     "738393a3b3c3d3e3f\",\"length\":70}"},
    {BYTES("C\x00."), "{\"bytes\":\"\",\"length\":0}"},
    /* Dates and times, as isoformat() writes them. */
    {BYTES("]cdatetime\ndate\nC\x04\x07\xe8\x02\x1d\x85Ra."), "[\"2024-02-29\"]"},
    {BYTES("]cdatetime\ndate\nC\x04\x00\x01\x01\x01\x85Ra."), "[\"0001-01-01\"]"},
    {BYTES("]cdatetime\ndatetime\nC\n\x07\xcf\x0c\x1f\x17;;\x01\xe2@\x85Ra."), "[\"1999-12-31T23:59:59.123456\"]"},
    {BYTES("]\x8c\x08"
           "datetime\x8c\x08"
           "datetime\x93"
           "C\n\x07\xe8\x8a\x1b\x02\x1e\x00\x00\x00\x00\x85Ra."),
     "[\"2024-10-27T02:30:00\"]"},
    {BYTES("]cdatetime\ntime\nC\x06\x01\x02\x03\x00\x00\x00\x85Ra."), "[\"01:02:03\"]"},
    {BYTES("]cdatetime\ntime\nC\x06\x17\x00\x00\x00\x00\x07\x85Ra."), "[\"23:00:00.000007\"]"},
    {BYTES("]cdatetime\ndate\nc_"
           "codecs\nencode\nX\x05\x00\x00\x00\x07\xc3\xa8\x02\x1dX\x06\x00\x00\x00latin1\x86R\x85Ra."),
     "[\"2024-02-29\"]"},
    /* Scalars of numpy. */
    {BYTES("]cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\x02\x00\x00\x00"
           "f8\x89\x88\x87R(K\x03X\x01\x00\x00\x00<"
           "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tbC\x08\x9a\x99\x99\x99\x99\x99\xb9?\x86Ra."),
     "[0.1]"},
    {BYTES("]cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\x02\x00\x00\x00"
           "f4\x89\x88\x87R(K\x03X\x01\x00\x00\x00<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tbC\x04\xcd\xcc\xcc="
           "\x86Ra."),
     "[0.10000000149011612]"},
    {BYTES("]cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\x02\x00\x00\x00"
           "f2\x89\x88\x87R(K\x03X\x01\x00\x00\x00<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tbC\x02\x00>\x86Ra."),
     "[1.5]"},
    {BYTES("]cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\x02\x00\x00\x00i1\x89\x88\x87R(K\x03X\x01\x00\x00\x00|"
           "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tbC\x01\xfb\x86Ra."),
     "[-5]"},
    {BYTES("]cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\x02\x00\x00\x00i8\x89\x88\x87R(K\x03X\x01\x00\x00\x00<"
           "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tbC\x08\x00\x00\x00\x00\x00\x00\x00\x80\x86Ra."),
     "[-9223372036854775808]"},
    {BYTES("]cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\x02\x00\x00\x00u8\x89\x88\x87R(K\x03X\x01\x00\x00\x00<"
           "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tbC\x08\xff\xff\xff\xff\xff\xff\xff\xff\x86Ra."),
     "[18446744073709551615]"},
    {BYTES("]cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\x02\x00\x00\x00"
           "b1\x89\x88\x87R(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tbC\x01\x01\x86Ra."),
     "[true]"},
    /* Sets, and arrays of what are not numbers. */
    {BYTES("\x8f(K\x07\x90."), "[7]"},
    {BYTES("(K\x07\x91."), "[7]"},
    {BYTES("c__builtin__\nset\n]K\x07"
           "a\x85R."),
     "[7]"},

    /* Objects: their attributes, or what they were made of. */
    {BYTES("cargparse\nNamespace\n)\x81}X\x02\x00\x00\x00lrG?\xe0\x00\x00\x00\x00\x00\x00sb."), "{\"lr\":0.5}"},
    {BYTES("clib\nA\n)\x81}K\x01K\x02s}K\x03K\x04s\x86"
           "b."),
     "{\"1\":2,\"3\":4}"},
    {BYTES("clib\nColor\n(K\x01tR."), "{\"lib.Color\":[1]}"},
    {BYTES("]cbuiltins\nlen\na."), "[\"builtins.len\"]"},
    {BYTES("cdatetime\ndatetime\nC\n\x07\xe8\x01\x01\x00\x00\x00\x00\x00\x00Vzone\n\x86R."),
     "{\"datetime.datetime\":[{\"bytes\":\"07e80101000000000000\",\"length\":10},\"zone\"]}"},

    /* What contains itself is not written again. */
    {BYTES("}q\x00(K\x01h\x00K\x02K\x03u."), "{\"2\":3}"},
    {BYTES("]q\x00(h\x00K\x01"
           "e."),
     "[null,1]"},

    /* Nothing that is worth a line. */
    {BYTES("}."), NULL},
    {BYTES("]."), NULL},
};

/* The extras of a pickle, in the arena. */
static const char *extras_of(struct arena *arena, const char *bytes, size_t length, bool *ret_cut)
{
    struct pickle pickle;
    struct error error = {""};
    if (!CHECK_NAMED(pickle_read(&pickle, bytes, length, arena, NULL, &error), "the pickle is read"))
        return error.message[0] != '\0' ? arena_strdup(arena, error.message) : NULL;
    return torch_extras(arena, pickle.root, ret_cut);
}

static void check_rows(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct arena *arena = arena_new();
        bool cut;
        const char *extras = extras_of(arena, rows[i].bytes, rows[i].length, &cut);
        if (rows[i].json != NULL)
            CHECK_TEXT(extras, rows[i].json);
        else
            CHECK(extras == NULL);
        CHECK(!cut);
        arena_free(arena);
    }
}

/* `n` lists, each the only item of the one before, or as many items of one list. */
static void check_cut(size_t n, bool is_nested, bool is_cut)
{
    struct arena *arena = arena_new();
    struct buffer bytes = {0};
    bool cut;
    buffer_append_text(&bytes, is_nested ? "K\x01" : "](");
    for (size_t i = 0; i < n; i++)
        buffer_append_text(&bytes, is_nested ? "\x85" : "K\x01");
    buffer_append_text(&bytes, is_nested ? "." : "e.");
    const char *extras = extras_of(arena, (const char *)bytes.bytes, bytes.length, &cut);
    CHECK(cut == is_cut);
    CHECK(extras == NULL || strlen(extras) <= TORCH_MAX_EXTRAS + 2 * n);
    buffer_free(&bytes);
    arena_free(arena);
}

/* A text that is shared: each time it counts. */
static void check_shared(void)
{
    enum { LENGTH = 100 * 1024 };
    struct arena *arena = arena_new();
    struct buffer bytes = {0};
    bool cut;
    buffer_append_text(&bytes, "](X");
    buffer_append_le(&bytes, LENGTH, 4);
    for (size_t i = 0; i < LENGTH; i++)
        buffer_append_text(&bytes, "x");
    buffer_append_text(&bytes, "q\x01");
    for (int i = 0; i < 5; i++)
        buffer_append_text(&bytes, "h\x01");
    buffer_append_text(&bytes, "e.");
    const char *extras = extras_of(arena, (const char *)bytes.bytes, bytes.length, &cut);
    CHECK(cut);
    CHECK(extras != NULL && strlen(extras) > 2 * LENGTH && strlen(extras) <= TORCH_MAX_EXTRAS);
    CHECK(extras != NULL && extras[strlen(extras) - 1] == ']');
    buffer_free(&bytes);
    arena_free(arena);
}

int main(void)
{
    check_rows();
    check_cut(32, true, false);
    check_cut(33, true, true);
    check_cut(65535, false, false);
    check_cut(65536, false, true);
    check_shared();
    return check_done();
}
