/* Pickles assembled by hand: what each opcode makes, and every way in which one is refused. The malformed ones follow
 * the lists test_bad_stack, test_bad_mark and test_truncated_data of CPython's Lib/test/pickletester.py. */
#include "formats/torch/pickle.h"

#include "base/text.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <stdlib.h>

/* A pickle and its length; literals may hold NULs. */
#define BYTES(literal) literal, sizeof(literal) - 1

static const struct {
    const char *bytes;
    size_t length;
    const char *says; /* the whole error, or its start */
} refused[] = {
    /* Calls. */
    {BYTES("cos\nsystem\n(S'id'\ntR."), "offset 19: REDUCE of os.system: a function call, not data"},
    {BYTES("\x80\x02"
           "cposix\nsystem\nU\x02id\x85R."),
     "offset 21: REDUCE of posix.system: a function call, not data"},
    {BYTES("\x80\x04\x8c\x02nt\x8c\x06system\x93\x8c\x02id\x85R."),
     "offset 20: REDUCE of nt.system: a function call, not data"},
    {BYTES("(S'id'\nios\nsystem\n."), "offset 7: INST of os.system: a function call, not data"},
    {BYTES("(cos\nsystem\nS'id'\no."), "offset 18: OBJ of os.system: a function call, not data"},
    {BYTES("\x80\x02"
           "cos\nsystem\n)\x81."),
     "offset 14: NEWOBJ of os.system: a function call, not data"},
    {BYTES("\x80\x04"
           "cos\nsystem\n)}\x92."),
     "offset 15: NEWOBJ_EX of os.system: a function call, not data"},
    {BYTES("cos\nsystem\n."), "offset 0: GLOBAL of os.system: a function call, not data"},
    {BYTES("ccopyreg\n_reconstructor\n(cos\nsystem\nc__builtin__\nobject\nNtR."),
     "offset 58: REDUCE of os.system: a function call, not data"},
    {BYTES("cbuiltins\neval\n(S'1'\ntR."), "offset 22: REDUCE of builtins.eval: a function call, not data"},
    {BYTES("c__builtin__\nexec\n(S'1'\ntR."), "offset 25: REDUCE of __builtin__.exec: a function call, not data"},
    {BYTES("c__builtin__\ncompile\n(tR."), "offset 23: REDUCE of __builtin__.compile: a function call, not data"},
    {BYTES("c__builtin__\nopen\n(tR."), "offset 20: REDUCE of __builtin__.open: a function call, not data"},
    {BYTES("c__builtin__\n__import__\n(tR."), "offset 26: REDUCE of __builtin__.__import__: a function call, not data"},
    {BYTES("clogging\nos.system\n(tR."), "offset 21: REDUCE of logging.os.system: a function call, not data"},
    {BYTES("cio\nopen\n(tR."), "offset 11: REDUCE of io.open: a function call, not data"},
    {BYTES("cbuiltins\neval.__call__\n(tR."), "offset 26: REDUCE of builtins.eval.__call__: a function call, not data"},
    {BYTES("cfunctools\npartial\n(cos\nsystem\ntR."), "offset 20: GLOBAL of os.system: a function call, not data"},
    {BYTES("csubprocess\nPopen\n(tR."), "offset 20: REDUCE of subprocess.Popen: a function call, not data"},
    {BYTES("crunpy\nrun_path\n(tR."), "offset 18: REDUCE of runpy.run_path: a function call, not data"},
    {BYTES("cpip\nmain\n(tR."), "offset 12: REDUCE of pip.main: a function call, not data"},
    {BYTES("cwebbrowser\nopen\n(tR."), "offset 19: REDUCE of webbrowser.open: a function call, not data"},
    {BYTES("csocket\ncreate_connection\n(tR."),
     "offset 28: REDUCE of socket.create_connection: a function call, not data"},
    {BYTES("cshutil\nrmtree\n(tR."), "offset 17: REDUCE of shutil.rmtree: a function call, not data"},
    {BYTES("ctorch\nload\n(tR."), "offset 14: REDUCE of torch.load: a function call, not data"},
    {BYTES("ctorch.hub\nload\n(tR."), "offset 18: REDUCE of torch.hub.load: a function call, not data"},
    {BYTES("ctorch.serialization\nload\n(tR."),
     "offset 28: REDUCE of torch.serialization.load: a function call, not data"},
    {BYTES("cnumpy.testing._private.utils\nrunstring\n(tR."),
     "offset 42: REDUCE of numpy.testing._private.utils.runstring: a function call, not data"},
    {BYTES("c_pickle\nloads\n(tR."), "offset 17: REDUCE of _pickle.loads: a function call, not data"},
    {BYTES("ctypes\nCodeType\n(tR."), "offset 18: REDUCE of types.CodeType: a function call, not data"},
    {BYTES("ctorch\nSize\nNR."), "offset 13: REDUCE of torch.Size: its arguments are not a tuple"},
    {BYTES("(lI1\n(tR."), "offset 7: REDUCE of something that is not a global"},
    {BYTES("ctorch\nSize\n(tR(tR."), "offset 17: REDUCE of something that is not a global"},

    /* The wrong kind of value. */
    {BYTES("ctorch\nSize\n}b."), "offset 13: BUILD: sets the state of a value that is not an object"},
    {BYTES("}}b."), "offset 2: BUILD: sets the state of a value that is not an object"},
    {BYTES("ca\nB\n)\x81}b}b."), "offset 10: BUILD: sets the state of an object twice"},
    {BYTES("]NNs."), "offset 3: SETITEM: adds a key to an object that is not a dict"},
    {BYTES("NNNs."), "offset 3: SETITEM: adds a key to an object that is not a dict"},
    {BYTES("K\x01(NNu."), "offset 5: SETITEMS: adds a key to an object that is not a dict"},
    {BYTES("}Na."), "offset 2: APPEND: appends to an object that is not a list"},
    {BYTES("N(Ne."), "offset 3: APPENDS: appends to an object that is not a list"},
    {BYTES("](N\x90."), "offset 3: ADDITEMS: adds to an object that is not a set"},
    {BYTES("}(Nu."), "offset 3: SETITEMS: a key without a value"},
    {BYTES("(Nd."), "offset 2: DICT: a key without a value"},
    {BYTES("NN\x93."), "offset 2: STACK_GLOBAL: module and name are not texts"},
    {BYTES("cC\nD\nN\x81."), "offset 6: NEWOBJ: its arguments are not a tuple"},
    {BYTES("cC\nD\n)]\x92."), "offset 7: NEWOBJ_EX: its keyword arguments are not a dict"},

    /* What is not in the file, and what is not an opcode. */
    {BYTES("\x80\x02\x82\x01."), "offset 2: EXT1: refers to data outside the file"},
    {BYTES("\x80\x02\x83\x01\x00."), "offset 2: EXT2: refers to data outside the file"},
    {BYTES("\x80\x02\x84\x01\x00\x00\x00."), "offset 2: EXT4: refers to data outside the file"},
    {BYTES("\x80\x05\x97."), "offset 2: NEXT_BUFFER: refers to data outside the file"},
    {BYTES("\x80\x05\x98."), "offset 2: READONLY_BUFFER: refers to data outside the file"},
    {BYTES("\x80\x06N."), "offset 0: PROTO: unknown protocol 6"},
    {BYTES("\x80\xffN."), "offset 0: PROTO: unknown protocol 255"},
    {BYTES("N\xff."), "offset 1: the pickle contains 0xff, which is not an opcode"},
    {BYTES(""), "offset 0: the pickle ends without STOP"},
    {BYTES("N"), "offset 1: the pickle ends without STOP"},
    {BYTES("."), "offset 0: STOP: not enough values on the stack"},
    {BYTES("(."), "offset 1: STOP: not enough values on the stack"},
    {BYTES("N(."), "offset 2: STOP: not enough values on the stack"},

    /* Numbers and texts. */
    {BYTES("I\n."), "offset 0: INT: a number without digits"},
    {BYTES("I1e3\n."), "offset 0: INT: not a decimal number"},
    {BYTES("I0x10\n."), "offset 0: INT: not a decimal number"},
    {BYTES("L\n."), "offset 0: LONG: a number without digits"},
    {BYTES("Lx\n."), "offset 0: LONG: not a decimal number"},
    {BYTES("F0x1p3\n."), "offset 0: FLOAT: not a number"},
    {BYTES("F1,5\n."), "offset 0: FLOAT: not a number"},
    {BYTES("Fnan(1)\n."), "offset 0: FLOAT: not a number"},
    {BYTES("F\n."), "offset 0: FLOAT: not a number"},
    {BYTES("\x8b\xff\xff\xff\xff."), "offset 0: LONG4: a negative length"},
    {BYTES("T\xff\xff\xff\xff."), "offset 0: BINSTRING: a negative length"},
    {BYTES("S\n."), "offset 0: STRING: no quotes"},
    {BYTES("S'\n."), "offset 0: STRING: no quotes"},
    {BYTES("Sabc\n."), "offset 0: STRING: no quotes"},
    {BYTES("S'a\"\n."), "offset 0: STRING: no quotes"},
    {BYTES("S'a\\'\n."), "offset 0: STRING: an unknown escape"},
    {BYTES("S'\\xz0'\n."), "offset 0: STRING: an unknown escape"},
    {BYTES("V\\u12\n."), "offset 0: UNICODE: an unknown escape"},
    {BYTES("V\\U00110000\n."), "offset 0: UNICODE: an unknown escape"},
    {BYTES("X\x01\x00\x00\x00\xff."), "offset 0: BINUNICODE: not UTF-8"},
    {BYTES("\x8c\x01\x80."), "offset 0: SHORT_BINUNICODE: not UTF-8"},
    {BYTES("c\xff\nx\n."), "offset 0: GLOBAL: not UTF-8"},
    {BYTES("\x8c\x02"
           "a\0\x8c\x01"
           "b\x93."),
     "offset 7: STACK_GLOBAL: a name that contains a NUL"},

    /* Bombs. */
    {BYTES("X\xff\xff\xff\xff."), "offset 0: BINUNICODE: the pickle ends within its argument"},
    {BYTES("\x8d\xff\xff\xff\xff\xff\xff\xff\x7f."), "offset 0: BINUNICODE8: the pickle ends within its argument"},
    {BYTES("\x8e\x00\x00\x00\x00\x00\x00\x00\x80."), "offset 0: BINBYTES8: the pickle ends within its argument"},
    {BYTES("\x96\xff\xff\xff\xff\xff\xff\xff\xff."), "offset 0: BYTEARRAY8: the pickle ends within its argument"},
    {BYTES("B\xff\xff\xff\xff."), "offset 0: BINBYTES: the pickle ends within its argument"},
    {BYTES("\x8b\xff\xff\xff\x7f."), "offset 0: LONG4: the pickle ends within its argument"},
    {BYTES("\x95\x00\x00\x00\x00\x00\x00\x00\x80N."),
     "offset 0: FRAME: a frame of 9223372036854775808 bytes, but 2 are left"},
    {BYTES("Np99999999999999999999\n."), "offset 1: PUT: not a memo index"},
    {BYTES("Np4294967296\n."), "offset 1: PUT: not a memo index"},
    {BYTES("Np-1\n."), "offset 1: PUT: not a memo index"},
    {BYTES("Np1e3\n."), "offset 1: PUT: not a memo index"},
    {BYTES("Np\n."), "offset 1: PUT: not a memo index"},
    {BYTES("g-1\n."), "offset 0: GET: not a memo index"},
    {BYTES("g0\n."), "offset 0: GET: memo 0 does not exist"},
    {BYTES("h\x00."), "offset 0: BINGET: memo 0 does not exist"},
    {BYTES("j\xff\xff\xff\xff."), "offset 0: LONG_BINGET: memo 4294967295 does not exist"},
};

/* One opcode more than the stack holds, or a MARK where none is or in between. */
static const struct {
    const char *bytes;
    size_t length;
} bad_stack[] = {
    {BYTES(".")},
    {BYTES("0")},
    {BYTES("1")},
    {BYTES("2")},
    {BYTES("(2")},
    {BYTES("R")},
    {BYTES(")R")},
    {BYTES("a")},
    {BYTES("Na")},
    {BYTES("b")},
    {BYTES("Nb")},
    {BYTES("d")},
    {BYTES("e")},
    {BYTES("(e")},
    {BYTES("ibuiltins\nlist\n")},
    {BYTES("l")},
    {BYTES("o")},
    {BYTES("(o")},
    {BYTES("p1\n")},
    {BYTES("q\x00")},
    {BYTES("r\x00\x00\x00\x00")},
    {BYTES("s")},
    {BYTES("Ns")},
    {BYTES("NNs")},
    {BYTES("t")},
    {BYTES("u")},
    {BYTES("(u")},
    {BYTES("}(Nu")},
    {BYTES("\x81")},
    {BYTES(")\x81")},
    {BYTES("\x85")},
    {BYTES("\x86")},
    {BYTES("N\x86")},
    {BYTES("\x87")},
    {BYTES("N\x87")},
    {BYTES("NN\x87")},
    {BYTES("\x90")},
    {BYTES("(\x90")},
    {BYTES("\x91")},
    {BYTES("\x92")},
    {BYTES(")}\x92")},
    {BYTES("\x93")},
    {BYTES("Vlist\n\x93")},
    {BYTES("\x94")},
    {BYTES("N(.")},
    {BYTES("]N(a")},
    {BYTES("cC\nD\nN(R")},
    {BYTES("N(b")},
    {BYTES("N(s")},
    {BYTES("}NN(s")},
    {BYTES("N(\x85")},
    {BYTES("NN(\x86")},
    {BYTES("NNN(\x87")},
    {BYTES("cC\nD\n)(\x81")},
    {BYTES("cC\nD\n)}(\x92")},
    {BYTES("Vlist\nVx\n(\x93")},
    {BYTES("N(p0\n")},
    {BYTES("N(q\x00")},
    {BYTES("N(r\x00\x00\x00\x00")},
    {BYTES("N(\x94")},
    {BYTES("N(Q")},
    {BYTES("Q")},
};

/* Arguments that are cut off. */
static const struct {
    const char *bytes;
    size_t length;
} truncated[] = {
    {BYTES("B")},
    {BYTES("B\x03\x00\x00")},
    {BYTES("B\x03\x00\x00\x00"
           "ab")},
    {BYTES("C")},
    {BYTES("C\x03"
           "ab")},
    {BYTES("F")},
    {BYTES("F0.0")},
    {BYTES("G")},
    {BYTES("G\x00\x00\x00\x00\x00\x00\x00")},
    {BYTES("I")},
    {BYTES("I0")},
    {BYTES("J")},
    {BYTES("J\x00\x00\x00")},
    {BYTES("K")},
    {BYTES("L")},
    {BYTES("L0")},
    {BYTES("L0L")},
    {BYTES("M")},
    {BYTES("M\x00")},
    {BYTES("S")},
    {BYTES("S'abc'")},
    {BYTES("T")},
    {BYTES("T\x03\x00\x00")},
    {BYTES("T\x03\x00\x00\x00"
           "ab")},
    {BYTES("U")},
    {BYTES("U\x03"
           "ab")},
    {BYTES("V")},
    {BYTES("Vabc")},
    {BYTES("X")},
    {BYTES("X\x03\x00\x00")},
    {BYTES("X\x03\x00\x00\x00"
           "ab")},
    {BYTES("(c")},
    {BYTES("(cbuiltins")},
    {BYTES("(cbuiltins\n")},
    {BYTES("(cbuiltins\nlist")},
    {BYTES("Ng")},
    {BYTES("Ng0")},
    {BYTES("(i")},
    {BYTES("(ibuiltins")},
    {BYTES("(ibuiltins\n")},
    {BYTES("(ibuiltins\nlist")},
    {BYTES("Nh")},
    {BYTES("Nj")},
    {BYTES("Nj\x00\x00\x00")},
    {BYTES("Np")},
    {BYTES("Np0")},
    {BYTES("Nq")},
    {BYTES("Nr")},
    {BYTES("Nr\x00\x00\x00")},
    {BYTES("\x80")},
    {BYTES("\x82")},
    {BYTES("\x83")},
    {BYTES("\x84\x01")},
    {BYTES("\x8a")},
    {BYTES("\x8b")},
    {BYTES("\x8b\x00\x00\x00")},
    {BYTES("\x8c")},
    {BYTES("\x8c\x03"
           "ab")},
    {BYTES("\x8d")},
    {BYTES("\x8d\x03\x00\x00\x00\x00\x00\x00")},
    {BYTES("\x8d\x03\x00\x00\x00\x00\x00\x00\x00"
           "ab")},
    {BYTES("\x8e")},
    {BYTES("\x8e\x03\x00\x00\x00\x00\x00\x00")},
    {BYTES("\x8e\x03\x00\x00\x00\x00\x00\x00\x00"
           "ab")},
    {BYTES("\x96")},
    {BYTES("\x96\x03\x00\x00\x00\x00\x00\x00")},
    {BYTES("\x95")},
    {BYTES("\x95\x02\x00\x00\x00\x00\x00\x00")},
    {BYTES("\x95\x02\x00\x00\x00\x00\x00\x00\x00N")},
    {BYTES("P")},
    {BYTES("P1")},
    {BYTES("(d")},
    {BYTES("N")},
    {BYTES("")},
};

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static bool reads(const char *bytes, size_t length, bool *ret_truncated, struct error *error)
{
    struct arena *arena = arena_new();
    struct pickle pickle;
    bool good = pickle_read(&pickle, bytes, length, arena, ret_truncated, error);
    arena_free(arena);
    return good;
}

static void check_refused(void)
{
    struct error error;
    for (size_t i = 0; i < LENGTH(refused); i++) {
        bool good = reads(refused[i].bytes, refused[i].length, NULL, &error);
        if (!CHECK_NAMED(!good && text_starts_with(error.message, refused[i].says), refused[i].says))
            fprintf(stderr, "  actual: %s\n", good ? "read" : error.message);
    }
}

static void check_malformed(void)
{
    char name[64];
    struct error error;
    for (size_t i = 0; i < LENGTH(bad_stack); i++) {
        bool cut;
        snprintf(name, sizeof name, "bad stack %zu", i);
        CHECK_NAMED(!reads(bad_stack[i].bytes, bad_stack[i].length, &cut, &error) && !cut, name);
    }
    for (size_t i = 0; i < LENGTH(truncated); i++) {
        bool cut;
        snprintf(name, sizeof name, "truncated %zu", i);
        CHECK_NAMED(!reads(truncated[i].bytes, truncated[i].length, &cut, &error) && cut, name);
    }
}

/* The graph as text, so that a row says what a pickle means. */
static void show(const struct pickle_node *node, char *out, size_t capacity);

static void show_items(const struct pickle_items *items, const char *open, const char *close, char *out,
                       size_t capacity)
{
    size_t n = (size_t)snprintf(out, capacity, "%s", open);
    for (uint32_t i = 0; i < items->n; i++) {
        show(items->nodes[i], out + n, capacity - n);
        n += strlen(out + n);
        n += (size_t)snprintf(out + n, capacity - n, "%s", i + 1 < items->n ? " " : "");
    }
    snprintf(out + n, capacity - n, "%s", close);
}

static void show_object(const struct pickle_object *object, char *out, size_t capacity)
{
    size_t n = (size_t)snprintf(out, capacity, "%s", object->class->global.name);
    show(object->arguments, out + n, capacity - n);
    n += strlen(out + n);
    if (object->pairs.n > 0)
        show_items(&object->pairs, "+{", "}", out + n, capacity - n);
    n += strlen(out + n);
    if (object->items.n > 0)
        show_items(&object->items, "+[", "]", out + n, capacity - n);
    n += strlen(out + n);
    if (object->state != NULL) {
        n += (size_t)snprintf(out + n, capacity - n, "=");
        show(object->state, out + n, capacity - n);
    }
}

static void show_text(const struct pickle_node *node, char *out, size_t capacity)
{
    const char *kind = node->old ? "o" : "";
    if (node->kind == PICKLE_BYTES)
        kind = "b";
    snprintf(out, capacity, "%s'%.*s'", kind, (int)node->text.length, node->text.bytes);
}

static void show(const struct pickle_node *node, char *out, size_t capacity)
{
    static const char *const constants[] = {"None", "False", "True"};
    switch (node->kind) {
    case PICKLE_INTEGER:
        snprintf(out, capacity, "%lld", (long long)node->integer);
        break;
    case PICKLE_BIG_INTEGER:
        snprintf(out, capacity, "big:%zu", node->text.length);
        break;
    case PICKLE_FLOAT:
        snprintf(out, capacity, "%g", node->number);
        break;
    case PICKLE_TEXT:
    case PICKLE_BYTES:
        show_text(node, out, capacity);
        break;
    case PICKLE_TUPLE:
        show_items(&node->items, "(", ")", out, capacity);
        break;
    case PICKLE_LIST:
        show_items(&node->items, "[", "]", out, capacity);
        break;
    case PICKLE_SET:
        show_items(&node->items, "<", ">", out, capacity);
        break;
    case PICKLE_DICT:
        show_items(&node->items, "{", "}", out, capacity);
        break;
    case PICKLE_GLOBAL:
        snprintf(out, capacity, "%s.%s", node->global.module, node->global.name);
        break;
    case PICKLE_OBJECT:
        show_object(node->object, out, capacity);
        break;
    case PICKLE_PERSISTENT:
        snprintf(out, capacity, "@");
        show(node->persistent.id, out + 1, capacity - 1);
        break;
    default:
        snprintf(out, capacity, "%s", constants[node->kind]);
    }
}

static const struct {
    const char *bytes;
    size_t length;
    const char *means;
} understood[] = {
    {BYTES("\x80\x02N."), "None"},
    {BYTES("(I00\nI01\n\x88\x89t."), "(False True True False)"},
    {BYTES("(I1\nI-2\nI+3\nL4L\nL-5\nt."), "(1 -2 3 4 -5)"},
    {BYTES("(I9223372036854775807\nI9223372036854775808\nt."), "(9223372036854775807 big:19)"},
    {BYTES("(J\xff\xff\xff\xffK\xffM\xff\xfft."), "(-1 255 65535)"},
    {BYTES("(\x8a\x00\x8a\x01\xff\x8a\x02\x00\x80\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x8a\x09\0\0\0\0\0\0\0\0\1t."),
     "(0 -1 -32768 9223372036854775807 big:9)"},
    {BYTES("\x8b\x01\x00\x00\x00\x7f."), "127"},
    {BYTES("(F1.5\nFinf\nG\xbf\xf0\x00\x00\x00\x00\x00\x00t."), "(1.5 inf -1)"},
    {BYTES("(S'a\\n\\x41\\101\\''\nS\"b\"\nU\x01"
           "cT\x01\x00\x00\x00"
           "dt."),
     "(o'a\nAA'' o'b' o'c' o'd')"},
    {BYTES("(V\\u00e9\xe9\\x\nX\x01\x00\x00\x00"
           "a\x8c\x01"
           "b\x8d\x01\x00\x00\x00\x00\x00\x00\x00"
           "ct."),
     "('\xc3\xa9\xc3\xa9\\x' 'a' 'b' 'c')"},
    {BYTES("\x8c\x03\xed\xa0\x80."), "'\xed\xa0\x80'"},
    {BYTES("(C\x01"
           "aB\x01\x00\x00\x00"
           "b\x8e\x01\x00\x00\x00\x00\x00\x00\x00"
           "c\x96\x01\x00\x00\x00\x00\x00\x00\x00"
           "dt."),
     "(b'a' b'b' b'c' b'd')"},
    {BYTES("()N\x85NN\x86NNN\x87t."), "(() (None) (None None) (None None None))"},
    {BYTES("(](NNl]Na](NNet."), "([] [None None] [None] [None None])"},
    {BYTES("(}(NNd}NNs}(NNNNut."), "({} {None None} {None None} {None None None None})"},
    {BYTES("(\x8f\x8f(K\x01\x90(K\x02\x91t."), "(<> <1> <2>)"},
    {BYTES("N(K\x01K\x02"
           "1K\x03"
           "0."),
     "None"},
    {BYTES("K\x01(0."), "1"}, /* POP takes the MARK */
    {BYTES("(K\x07"
           "2t."),
     "(7 7)"},
    {BYTES("(K\x07q\x05h\x05r\xff\xff\xff\xff"
           "0j\xff\xff\xff\xffp9\ng9\nt."),
     "(7 7 7)"},
    {BYTES("(K\x07\x94K\x08\x94h\x01h\x00t."), "(7 8 8 7)"},
    {BYTES("K\x07q\x05"
           "0K\x08\x94"
           "0h\x01."),
     "8"}, /* MEMOIZE counts what is memorized */
    {BYTES("\x80\x04\x95\x02\x00\x00\x00\x00\x00\x00\x00N."), "None"},
    {BYTES("\x80\x02\x80\x03N."), "None"},
    {BYTES("N.garbage"), "None"},
    {BYTES("clib\nname\n."), "lib.name"},
    {BYTES("\x8c\x05torch\x8c\x07"
           "float32\x93."),
     "torch.float32"},
    {BYTES("ccollections\nOrderedDict\n)RK\x01K\x02s}b."), "OrderedDict()+{1 2}={}"},
    {BYTES("ccollections\ndefaultdict\nc__builtin__\nlist\n\x85RK\x01K\x02s."), "defaultdict(__builtin__.list)+{1 2}"},
    {BYTES("c__builtin__\nset\n]K\x01"
           "a\x85R."),
     "set([1])"},
    {BYTES("cargparse\nNamespace\n)\x81}K\x01K\x02sb."), "Namespace()={1 2}"},
    {BYTES("cargparse\nNamespace\n)}\x92."), "Namespace()"},
    {BYTES("(iargparse\nNamespace\n}b."), "Namespace()={}"},
    {BYTES("(clib\nA\no."), "A()"},
    {BYTES("(ilib\nA\n."), "A()"},
    {BYTES("clib\nA\n)\x81K\x01"
           "aK\x02K\x03s."),
     "A()+{2 3}+[1]"},
    {BYTES("ccopy_reg\n_reconstructor\n(clib\nA\nc__builtin__\nobject\nNtR."), "A(lib.A __builtin__.object None)"},
    {BYTES("ccopyreg\n__newobj__\n(clib\nA\nK\x05tR."), "A(lib.A 5)"},
    {BYTES("ctorch._utils\n_rebuild_tensor_v2\n)R."), "_rebuild_tensor_v2()"},
    {BYTES("clib.x\nf\n(I1\ntR."), "f(1)"}, /* opaque from here on */
    {BYTES("(I1\nilib.x\nF\n."), "F(1)"},
    {BYTES("(clib.x\nF\nI1\no."), "F(1)"},
    {BYTES("ctorch\nfloat32\n(tR."), "float32()"},
    {BYTES("cbuiltins\ngetattr\n(clib\nE\nVx\ntR."), "getattr(lib.E 'x')"},
    {BYTES("cfunctools\npartial\n(cbuiltins\nlen\ntR(N}NNtb."), "partial(builtins.len)=(None {} None None)"},
    {BYTES("clib\nf\n(tR(I2\ntR."), "f(2)"}, /* what f gives, called */
    {BYTES("clib\nf\n(tRI1\naI2\nI3\ns."), "f()+{2 3}+[1]"},
    {BYTES("(P12\nK\x01Qt."), "(@o'12' @1)"},
    {BYTES("(X\x06\x00\x00\x00moduleclib\nA\nNNtQ)\x81."), "A()"},
};

static void check_understood(void)
{
    for (size_t i = 0; i < LENGTH(understood); i++) {
        char shown[400];
        struct error error;
        struct pickle pickle;
        struct arena *arena = arena_new();
        if (pickle_read(&pickle, understood[i].bytes, understood[i].length, arena, NULL, &error))
            show(pickle.root, shown, sizeof shown);
        else
            snprintf(shown, sizeof shown, "refused: %.300s", error.message);
        CHECK_TEXT(shown, understood[i].means);
        arena_free(arena);
    }
}

/* A pickle elsewhere, and how much of it was brought. */
struct elsewhere {
    const unsigned char *bytes;
    size_t n_brought, end;
    bool in_order, fails;
};

static bool bring(void *context, uint64_t from, size_t length, unsigned char *out, struct error *error)
{
    struct elsewhere *elsewhere = context;
    if (elsewhere->fails)
        return error_set(error, "a broken cable");
    memcpy(out, elsewhere->bytes + from, length);
    elsewhere->in_order &= from >= elsewhere->end;
    elsewhere->end = from + length;
    elsewhere->n_brought += length;
    return true;
}

static void check_parts(void)
{
    enum { N_CONTENTS = 3 << 20, N_NEEDED = 12 };
    static const char head[] = "(B\0\0\x30\0", tail[] = "I700\nt.";
    const size_t length = sizeof head - 1 + N_CONTENTS + sizeof tail - 1;
    unsigned char *bytes = malloc(length), *room = malloc(length);
    memcpy(bytes, head, sizeof head - 1);
    memset(bytes + sizeof head - 1, 'x', N_CONTENTS);
    memcpy(bytes + length - (sizeof tail - 1), tail, sizeof tail - 1);
    struct elsewhere elsewhere = {.bytes = bytes, .in_order = true};
    const struct pickle_parts parts = {room, length, bring, &elsewhere};
    struct arena *arena = arena_new();
    struct pickle pickle;
    struct error error;
    if (CHECK(pickle_read_parts(&pickle, &parts, arena, &error))) {
        const struct pickle_node *contents = pickle_at(pickle.root, 0), *number = pickle_at(pickle.root, 1);
        CHECK(pickle_is(contents, PICKLE_BYTES) && contents->absent && contents->text.length == N_CONTENTS);
        CHECK(contents->text.bytes == (char *)room + sizeof head - 1 &&
              contents->text.bytes[PICKLE_PRESENT - 1] == 'x');
        CHECK(pickle_is(number, PICKLE_INTEGER) && number->integer == 700 && !number->absent);
        CHECK(number->offset == length - (sizeof tail - 1) && pickle.length == length);
        CHECK(elsewhere.in_order && elsewhere.n_brought < 16384 && pickle.n_needed < 16384 &&
              pickle.n_needed >= N_NEEDED);
    }
    for (size_t i = 1; i < sizeof tail - 1; i++) {
        const struct pickle_parts cut = {room, length - i, bring, &elsewhere};
        CHECK(!pickle_read_parts(&pickle, &cut, arena, &error));
    }
    const struct pickle_parts without_contents = {room, length - sizeof tail, bring, &elsewhere};
    CHECK(!pickle_read_parts(&pickle, &without_contents, arena, &error));
    CHECK_TEXT(error.message, "offset 1: BINBYTES: the pickle ends within its argument");
    elsewhere.fails = true;
    CHECK(!pickle_read_parts(&pickle, &parts, arena, &error));
    CHECK_TEXT(error.message, "a broken cable");
    const struct pickle_parts endless = {room, (UINT64_C(1) << 38) + 1, bring, &elsewhere};
    CHECK(!pickle_read_parts(&pickle, &endless, arena, &error));
    arena_free(arena);
    free(bytes);
    free(room);
}

/* A line may end in any part. */
static void check_long_line(void)
{
    enum { N_LETTERS = 300000 };
    char *bytes = malloc(N_LETTERS + 3), *room = malloc(N_LETTERS + 3);
    memset(bytes, 'a', N_LETTERS + 3);
    bytes[0] = 'V';
    bytes[N_LETTERS + 1] = '\n';
    bytes[N_LETTERS + 2] = '.';
    struct elsewhere elsewhere = {.bytes = (unsigned char *)bytes};
    const struct pickle_parts parts = {(unsigned char *)room, N_LETTERS + 3, bring, &elsewhere};
    struct arena *arena = arena_new();
    struct pickle pickle;
    struct error error;
    CHECK(pickle_read_parts(&pickle, &parts, arena, &error) && pickle_is(pickle.root, PICKLE_TEXT) &&
          pickle.root->text.length == N_LETTERS);
    arena_free(arena);
    free(bytes);
    free(room);
}

static void check_names_foreign_classes(void)
{
    static const char bytes[] = "(ca\nB\n)\x81"
                                "ca\nB\n)\x81"
                                "cc\nD\n)\x81"
                                "ce\nF\nt.";
    struct arena *arena = arena_new();
    struct pickle pickle;
    struct error error;
    CHECK(pickle_read(&pickle, bytes, sizeof bytes - 1, arena, NULL, &error) && pickle.n_foreign == 2);
    CHECK_TEXT(pickle.foreign[0].global->global.module, "a");
    CHECK(pickle.foreign[1].global->offset == 15 && !pickle.foreign[1].called);
    arena_free(arena);
}

/* Repeats one piece many times between two others. */
static bool reads_repeated(const char *head, size_t head_length, const char *piece, size_t piece_length, size_t count,
                           const char *tail, size_t tail_length, struct error *error)
{
    size_t length = head_length + count * piece_length + tail_length;
    char *bytes = malloc(length);
    memcpy(bytes, head, head_length);
    for (size_t i = 0; i < count; i++)
        memcpy(bytes + head_length + i * piece_length, piece, piece_length);
    memcpy(bytes + length - tail_length, tail, tail_length);
    bool good = reads(bytes, length, NULL, error);
    free(bytes);
    return good;
}

static void check_bulk(void)
{
    enum { MANY = 1000000 };
    struct error error;
    CHECK_NAMED(reads_repeated(BYTES("N"), BYTES("\x85"), MANY, BYTES("."), &error),
                "a million tuples, one in the other");
    CHECK_NAMED(reads_repeated(BYTES(""), BYTES("("), MANY, BYTES("N."), &error), "a million MARKs");
    CHECK_NAMED(reads_repeated(BYTES(""), BYTES("]"), MANY, BYTES("."), &error), "a million lists");
    CHECK_NAMED(reads_repeated(BYTES("N"), BYTES("2\x86"), MANY, BYTES("."), &error), "memo doubling is a small graph");
    CHECK_NAMED(!reads_repeated(BYTES("("), BYTES("N2"), MANY, BYTES("d"), &error),
                "a dict of a million pairs, not ended");
    CHECK_NAMED(reads_repeated(BYTES("L"), BYTES("7"), MANY, BYTES("\n."), &error), "a number of a million digits");

    /* Each memo index in another corner: what the memo may use is bounded by the size of the pickle. */
    enum { PUTS = 20000 };
    char *bytes = malloc(PUTS * 5 + 2);
    bytes[0] = 'N';
    for (uint32_t i = 0; i < PUTS; i++) {
        uint32_t index = i * 2654435761u;
        bytes[1 + 5 * i] = 'r';
        memcpy(bytes + 2 + 5 * i, &index, 4);
    }
    bytes[PUTS * 5 + 1] = '.';
    CHECK_NAMED(!reads(bytes, PUTS * 5 + 2, NULL, &error) && strstr(error.message, "too much memory") != NULL,
                "a scattered memo");
    free(bytes);

    /* The stack and its marks count, and they grow by doubling. */
    CHECK_NAMED(reads_repeated(BYTES("("), BYTES("N"), MANY, BYTES("t."), &error), "a tuple of a million");
    CHECK_NAMED(reads_repeated(BYTES(""), BYTES("(N"), MANY, BYTES("."), &error), "a million MARKs and values");
}

int main(void)
{
    check_refused();
    check_malformed();
    check_understood();
    check_parts();
    check_long_line();
    check_names_foreign_classes();
    check_bulk();
    return check_done();
}
