/* Tensors of zip archives: what torch makes of a pickle, and what is refused. Values follow from torch/_utils.py:
 * element [i, j] is storage[offset + i * stride[0] + j * stride[1]]. tests/interop/test_torch.py compares with torch
 * itself. */
#include "base/little_endian.h"
#include "base/text.h"
#include "tests/unit/formats/readers_table.h"
#include "tests/unit/formats/torch/archive.h"

#define FLOATS                                PICKLE_STORAGE("FloatStorage", "0", "6") /* 0 1 2 3 4 5 */
#define IN_DICT(x)                            "(dVx\n" x "s."
#define TENSOR(storage, offset, size, stride) IN_DICT(PICKLE_TENSOR(storage, offset, size, stride))
#define PLAIN                                 PICKLE_TENSOR(FLOATS, "0", "I2\nI3\n", "I3\nI1\n")
#define SHORT                                 PICKLE_TENSOR(FLOATS, "4", "I1\n", "I1\n")
#define V3(storage, dtype, size, stride, metadata)                                                                     \
    "ctorch._utils\n_rebuild_tensor_v3\n(" storage "I0\n(" size "t(" stride "tI00\nNctorch\n" dtype "\n" metadata "tR"
#define BYTES(n)   PICKLE_STORAGE("UntypedStorage", "1", n) /* 24 bytes: 0 1 2 ... 23 */
#define TEN_DIMS   "I1\nI1\nI1\nI1\nI1\nI1\nI1\nI1\nI1\nI1\n"
#define SIXTY_DIMS TEN_DIMS TEN_DIMS TEN_DIMS TEN_DIMS TEN_DIMS TEN_DIMS

static const struct {
    const char *pickle, *says;
} rows[] = {
    /* Strides and offsets. */
    {IN_DICT(PLAIN), "x F32 [2, 3] 0 1 2 3 4 5"},
    {TENSOR(FLOATS, "0", "I3\nI2\n", "I1\nI3\n"), "x F32 [3, 2] 0 3 1 4 2 5"},
    {TENSOR(FLOATS, "1", "I2\n", "I2\n"), "x F32 [2] 1 3"},
    {TENSOR(FLOATS, "2", "I2\nI2\n", "I0\nI1\n"), "x F32 [2, 2] 2 3 2 3"},
    {TENSOR(FLOATS, "0", "I2\nI3\n", "I1\nI1\n"), "x F32 [2, 3] 0 1 2 1 2 3"},
    {TENSOR(FLOATS, "5", "", ""), "x F32 [] 5"},
    {TENSOR(FLOATS, "999", "I0\nI3\n", "I3\nI1\n"), "x F32 [0, 3]"},
    {TENSOR(FLOATS, "3", "I1\nI2\n", "I9223372036854775807\nI1\n"), "x F32 [1, 2] 3 4"},

    /* The functions that rebuild. */
    {IN_DICT("ctorch._utils\n_rebuild_tensor\n(" FLOATS "I4\n(I2\nt(I1\nttR"), "x F32 [2] 4 5"},
    {IN_DICT("ctorch._utils\n_rebuild_parameter\n(" PLAIN "I01\nNtR"), "x F32 [2, 3] 0 1 2 3 4 5"},
    {IN_DICT("ctorch._utils\n_rebuild_parameter_with_state\n(" SHORT "I01\nN(dtR"), "x F32 [1] 4"},
    {IN_DICT("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\nctorch\nTensor\n(" FLOATS
             "I4\n(I2\nt(I1\ntI00\nNt(dtR"),
     "x F32 [2] 4 5"},
    {IN_DICT("ctorch.nn.parameter\nParameter\n(" SHORT "I01\ntR"), "x F32 [1] 4"},
    {IN_DICT("ctorch\nFloatTensor\n(t\x81(" FLOATS "I4\n(I2\nt(I1\nttb"), "x F32 [2] 4 5"},
    {IN_DICT(V3(BYTES("24"), "float32", "I1\n", "I1\n", "")), "x F32 [1] 3.82047e-37"},
    {IN_DICT(V3(BYTES("24"), "uint16", "I2\n", "I1\n", "")), "x U16 [2] 256 770"},
    {IN_DICT(V3(BYTES("24"), "float4_e2m1fn_x2", "I3\n", "I1\n", "")), "x F4 [6] 0 0 0.5 0 1 0"},
    {IN_DICT(V3(BYTES("24"), "float4_e2m1fn_x2", "I2\n", "I2\n", "")),
     "x F4 [4] (a view that is not contiguous is not supported for this dtype)"},
    {IN_DICT(V3(BYTES("24"), "complex32", "I1\n", "I1\n", "(dVconj\nI01\ns")), "x C32 [1] 00 01 02 83"},
    {IN_DICT(V3(BYTES("24"), "float32", "I1\n", "I1\n", "(dVneg\nI01\ns")), "x F32 [1] -3.82047e-37"},
    {IN_DICT(V3(BYTES("24"), "int32", "I1\n", "I1\n", "(dVneg\nI01\ns")),
     "x I32 [1] (a tensor of this dtype with its negative bit set is not supported)"},
    {IN_DICT("ctorch._utils\n_rebuild_qtensor\n(" PICKLE_STORAGE(
         "QInt8Storage", "1", "24") "I0\n(I3\nt(I1\nt("
                                    "ctorch\nper_tensor_affine\nF0.1\nI0\ntI00\nNtR"),
     "x I8 [3] (quantized tensors are not supported)"},
    {IN_DICT("ctorch._utils\n_rebuild_sparse_tensor\n(ctorch\nsparse_coo\n(" SHORT SHORT "(I7\nI7\ntttR"),
     "x F32 [7, 7] (sparse tensors are not supported)"},
    {IN_DICT("ctorch._utils\n_rebuild_sparse_tensor\n(ctorch\nsparse_csr\n(" SHORT SHORT SHORT "(I7\nI7\ntttR"),
     "x F32 [7, 7] (sparse tensors are not supported)"},
    {IN_DICT("ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nbfloat16\n(I2\nI2\nt(I2\nI1\ntI00\ntR"),
     "x BF16 [2, 2] (a meta tensor has no values)"},
    {IN_DICT("ctorch._utils\n_rebuild_nested_tensor\n(NNNNtR"), "x U8 [] (nested tensors are not supported)"},
    {IN_DICT("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_wrapper_subclass\nclib\nT\n("
             "clib\nT\nctorch\nfloat32\n(I4\nt(I1\ntI0\nNNI00\nt(dVinner\n" SHORT "stR"),
     "x F32 [4] (a tensor subclass that keeps its values in other tensors)\nx.inner F32 [1] 4"},
    {IN_DICT("ctorch._utils\n_rebuild_device_tensor_from_cpu_tensor\n(" SHORT "ctorch\nfloat32\nVxla\nI00\ntR"),
     "x F32 [1] 4"},
    {IN_DICT("ctorch._utils\n_rebuild_device_tensor_from_cpu_tensor\n(" SHORT "ctorch\nbfloat16\nVxla\nI00\ntR"),
     "x F32 [1] (tensors that change dtype on load are not supported)"},
    {IN_DICT("ctorch._utils\n_rebuild_tensor_v2\n(ctorch.storage\n_load_from_bytes\n(C\1xtRI0\n(I1\nt(I1\ntI00\nNtR"),
     "x U8 [1] (its nested storage cannot be read: x.pt: magic number pickle at 0: offset 0: the pickle contains 0x78, "
     "which is not an opcode)"},

    /* What no tensor needs is named. The functions are not called, and their tensors are there. */
    {"(dVw\n" SHORT "sVcolor\nclib\nColor\n(I1\ntRs.", "w F32 [1] 4\n{\"color\":{\"lib.Color\":[1]}}"},
    {"(dVw\n" SHORT "sVmember\ncbuiltins\ngetattr\n(clib\nColor\nVRED\ntRs.",
     "w F32 [1] 4\n{\"member\":{\"builtins.getattr\":[\"lib.Color\",\"RED\"]}}"},
    {"(dVw\n" SHORT "sVf\ncfunctools\npartial\n(cbuiltins\nlen\ntR(cbuiltins\nlen\n(I1\nt(dNtbs.",
     "w F32 [1] 4\n{\"f\":{\"functools.partial\":[\"builtins.len\"],\"state\":[\"builtins.len\",[1],{},null]}}"},
    {"(dVlog\nclogging\ngetLogger\n(Vx\ntRsVf\ncmath\nsqrt\nsVw\n" SHORT "s.",
     "w F32 [1] 4\n{\"log\":{\"logging.getLogger\":[\"x\"]},\"f\":\"math.sqrt\"}"},
    {"(dVx\nclib\nf\n(" SHORT "tRs.", "x.0 F32 [1] 4\n{\"x\":{\"lib.f\":[null]}}"},
    {"(dVw\n" SHORT "sVb\nC\3abcsVn\nL18446744073709551616L\nsVm\n\x8a\11\1\1\1\1\1\1\1\1\1s.",
     "w F32 [1] "
     "4\n{\"b\":{\"bytes\":\"616263\",\"length\":3},\"n\":\"18446744073709551616\",\"m\":\"18519084246547628289\"}"},
    {"(dVw\n" SHORT "sVn\n\x8a\11\377\376\376\376\376\376\376\376\376s.",
     "w F32 [1] 4\n{\"n\":\"-18519084246547628289\"}"},
    {"(dVw\n" SHORT "sVstorage\n" FLOATS "s.", "w F32 [1] 4\n{\"storage\":{\"torch.FloatStorage\":[\"0\",\"cpu\",6]}}"},
    {IN_DICT("ctorch._utils\n_rebuild_parameter\n(clib\nf\n(tRI01\nNtR"), "a tensor made from an unknown object"},
    {TENSOR("clib\nf\n(tR", "0", "I1\n", "I1\n"), "a tensor without a storage"},
    {TENSOR(FLOATS, "0", "clib\nf\n(tR", "I1\n"), "a tensor whose sizes are not at most 64 numbers >= 0"},

    /* Expansion. */
    {TENSOR(FLOATS, "0", "I1099511627776\n", "I0\n"),
     "x F32 [1099511627776] (expands to more than 8 times the stored size)"},

    /* numpy. */
    {IN_DICT("cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntC\1btR(I1\n(I2\nI2\ntcnumpy\ndtype\n("
             "Vi2\nI00\nI01\ntR"
             "(I3\nV<\nNNNI-1\nI-1\nI0\ntbI01\nC\10\1\1\2\2\3\3\4\4tb"),
     "x I16 [2, 2] 257 771 514 1028"},
    {IN_DICT("cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntC\1btR(I1\n(I2\ntcnumpy\ndtype\n("
             "Vi2\nI00\nI01\ntR"
             "(I3\nV>\nNNNI-1\nI-1\nI0\ntbI00\nc_codecs\nencode\n(V\\u0001\\u0002\\u0003\\u00ff\nVlatin1\ntRtb"),
     "x I16 [2] 258 1023"},
    {IN_DICT("cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(Vf8\nI00\nI01\ntRC\10\232\231\231\231\231\231\271?tR"),
     "{\"x\":0.1}"},

    /* Refused: storages. */
    {TENSOR(PICKLE_STORAGE("FloatStorage", "0", "-1"), "0", "I1\n", "I1\n"),
     "storage '0': its number of elements is not a number"},
    {TENSOR(PICKLE_STORAGE("FloatStorage", "0", "01"), "0", "I1\n", "I1\n"),
     "storage '0': its number of elements is not a number"},
    {TENSOR(PICKLE_STORAGE("FloatStorage", "0", "99999999999999999999"), "0", "I1\n", "I1\n"),
     "storage '0': its number of elements is not a number"},
    {TENSOR(PICKLE_STORAGE("FloatStorage", "0", "4611686018427387905"), "0", "I1\n", "I1\n"),
     "storage '0': the size of 4611686018427387905 elements overflows"},
    {TENSOR(PICKLE_STORAGE("FloatStorage", "0", "5"), "0", "I1\n", "I1\n"),
     "storage a/data/0 has 24 bytes, but 5 elements of torch.float32 need 20"},
    {TENSOR(PICKLE_STORAGE("FloatStorage", "0", "7"), "0", "I1\n", "I1\n"),
     "storage a/data/0 has 24 bytes, but 7 elements of torch.float32 need 28"},
    {TENSOR(PICKLE_STORAGE("DoubleStorage", "0", "6"), "0", "I1\n", "I1\n"),
     "storage a/data/0 has 24 bytes, but 6 elements of torch.float64 need 48"},
    {TENSOR(PICKLE_STORAGE("FloatStorage", "9", "6"), "0", "I1\n", "I1\n"),
     "storage a/data/9 is missing from the archive"},
    {TENSOR(PICKLE_STORAGE("FloatStorage", "../data/0", "6"), "0", "I1\n", "I1\n"),
     "a storage whose key has characters other than"},
    {TENSOR(PICKLE_STORAGE("FloatStorage", "./0", "6"), "0", "I1\n", "I1\n"),
     "a storage whose key has characters other than"},
    {TENSOR(PICKLE_STORAGE("FloatStorage", "\\u00e9", "6"), "0", "I1\n", "I1\n"),
     "a storage whose key has characters other than"},
    {TENSOR(PICKLE_STORAGE("FloatStorage", "", "6"), "0", "I1\n", "I1\n"),
     "a storage whose key has characters other than"},
    {TENSOR("(Vstorage\nctorch\nFloatStorage\nI0\nVcpu\nI6\ntQ", "0", "I1\n", "I1\n"),
     "a storage whose key has characters other than"},
    {TENSOR(PICKLE_STORAGE("FooStorage", "0", "6"), "0", "I1\n", "I1\n"),
     "a storage of unknown class torch.FooStorage"},
    {TENSOR("(Vstorage\nclib\nFloatStorage\nV0\nVcpu\nI6\ntQ", "0", "I1\n", "I1\n"),
     "a storage of unknown class lib.FloatStorage"},
    {TENSOR("(Vstorage\nNV0\nVcpu\nI6\ntQ", "0", "I1\n", "I1\n"), "a storage without a class"},
    {TENSOR("(Vstorage\nctorch\nFloatStorage\nV0\nVcpu\ntQ", "0", "I1\n", "I1\n"), "a storage of 4 fields"},
    {TENSOR("(Vother\nctorch\nFloatStorage\nV0\nVcpu\nI6\ntQ", "0", "I1\n", "I1\n"),
     "a persistent id that is not a storage"},
    {TENSOR("I7\nQ", "0", "I1\n", "I1\n"), "a persistent id that is not a storage"},
    {TENSOR("P7\n", "0", "I1\n", "I1\n"), "a persistent id that is not a storage"},

    /* Refused: tensors. */
    {TENSOR("N", "0", "I1\n", "I1\n"), "a tensor without a storage"},
    {TENSOR(FLOATS, "-1", "I1\n", "I1\n"), "a tensor whose offset is not a number >= 0"},
    {TENSOR(FLOATS, "0", "I-1\n", "I1\n"), "a tensor whose sizes are not at most 64 numbers >= 0"},
    {TENSOR(FLOATS, "0", "I01\n", "I1\n"), "a tensor whose sizes are not at most 64 numbers >= 0"},
    {TENSOR(FLOATS, "0", "I1\n", "I-1\n"), "a tensor of 1 sizes whose strides are not as many numbers >= 0"},
    {TENSOR(FLOATS, "0", "I1\nI1\n", "I1\n"), "a tensor of 2 sizes whose strides are not as many numbers >= 0"},
    {TENSOR(FLOATS, "0", SIXTY_DIMS "I1\nI1\nI1\nI1\n", SIXTY_DIMS "I1\nI1\nI1\nI1\n"),
     "x F32 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
     "1, 1, 1, "
     "1, 1, 1, "
     "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1] 0"},
    {TENSOR(FLOATS, "0", SIXTY_DIMS "I1\nI1\nI1\nI1\nI1\n", SIXTY_DIMS "I1\nI1\nI1\nI1\nI1\n"),
     "a tensor whose sizes are not at most 64 numbers >= 0"},
    {TENSOR(FLOATS, "6", "I1\n", "I1\n"), "a tensor of elements [6, +1) in a storage of 6 elements"},
    {TENSOR(FLOATS, "0", "I7\n", "I1\n"), "a tensor of elements [0, +7) in a storage of 6 elements"},
    {TENSOR(FLOATS, "0", "I2\nI2\n", "I5\nI1\n"), "a tensor of elements [0, +7) in a storage of 6 elements"},
    {TENSOR(FLOATS, "1", "I2\n", "I9223372036854775807\n"), "a tensor of elements [1, +"},
    {TENSOR(FLOATS, "0", "I3\nI3\n", "I9223372036854775807\nI1\n"), "a tensor of elements [0, +"},
    {TENSOR(FLOATS, "0", "I4294967296\nI4294967296\n", "I0\nI0\n"), "a tensor whose size in bytes overflows"},
    {TENSOR(FLOATS, "0", "I2305843009213693952\n", "I0\n"), "a tensor whose size in bytes overflows"},
    {IN_DICT("ctorch._utils\n_rebuild_tensor_v2\n)R"), "a tensor without a storage"},
    {IN_DICT(V3(BYTES("24"), "nothing", "I1\n", "I1\n", "")), "a tensor of an unknown dtype"},
    {IN_DICT("ctorch._utils\n_rebuild_parameter\n(I1\nI01\nNtR"), "a tensor made from an unknown object"},
    {IN_DICT("ctorch._tensor\n_rebuild_from_type_v2\n(clib\nf\nclib\nT\n(t(dtR"),
     "x U8 [] (a tensor subclass that wfs does not know)"},
    {IN_DICT("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch\nSize\nclib\nT\n(t(dtR"),
     "a tensor made by a function that returns none"},
    {IN_DICT("ctorch._tensor\n_rebuild_from_type_v2\n(cos\nsystem\nclib\nT\n(Vid\nt(dtR"),
     "GLOBAL of os.system: a function call, not data"},
    {IN_DICT("cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntC\1btR(I1\n(I3\ntcnumpy\ndtype\n("
             "Vi2\nI00\nI01\ntRI00\n"
             "C\4abcdtb"),
     "a numpy array whose data do not have the 6 bytes of its shape"},
    {PLAIN "I1\na.", "APPEND: appends to an object that is not a list"},
    {PLAIN "I1\nI1\ns.", "SETITEM: adds a key to an object that is not a dict"},
};

static float floats[] = {0, 1, 2, 3, 4, 5};
static const unsigned char bytes[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                      12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};

static const struct open_options defaults;

static void check_rows(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct archive_member members[] = {{"a/data.pkl", rows[i].pickle, strlen(rows[i].pickle)},
                                                 {"a/data/1", bytes, sizeof bytes},
                                                 {"a/data/0", floats, sizeof floats},
                                                 {"a/version", "3\n", 2}};
        archive_write("x.pt", members, 4);
        char *described = archive_describe("x.pt", &defaults);
        bool refused = text_starts_with(described, "x.pt: a/data.pkl: offset ");
        char name[120];
        if (!CHECK_NAMED(refused ? strstr(described, rows[i].says) != NULL : strcmp(described, rows[i].says) == 0,
                         archive_test_name(rows[i].says, name)))
            fprintf(stderr, "  actual: %s\n", described);
        free(described);
    }
}

/* What an archive is made of, around a pickle that is good. */
static const char pickle[] = IN_DICT(PLAIN);
static float swapped[] = {0, 4.6006e-41f, 8.96831e-44f, 2.30485e-41f, 4.60074e-41f, 5.74868e-41f};

static const struct {
    struct archive_member members[5];
    const char *says;
} containers[] = {
    {{{"any/data/0", floats, 24}, {"any/version", "10", 2}, {"any/data.pkl", pickle, sizeof pickle - 1}},
     "x F32 [2, 3] 0 1 2 3 4 5"},
    {{{"a/", "", 0},
      {"a/data.pkl", pickle, sizeof pickle - 1},
      {"a/data/", "", 0},
      {"a/data/0", floats, 24},
      {"a/version", "3", 1}},
     "x F32 [2, 3] 0 1 2 3 4 5"},
    {{{"a/data.pkl", pickle, sizeof pickle - 1},
      {"a/data/0", swapped, 24},
      {"a/version", "3", 1},
      {"a/byteorder", "big", 3}},
     "x F32 [2, 3] 0 1 2 3 4 5"},
    {{{"a/data.pkl", pickle, sizeof pickle - 1},
      {"a/data/0", floats, 24},
      {"a/version", "3", 1},
      {"a/byteorder", "little", 6}},
     "x F32 [2, 3] 0 1 2 3 4 5"},
    {{{"a/data.pkl", pickle, sizeof pickle - 1},
      {"a/data/0", floats, 24},
      {"a/version", "3", 1},
      {"a/byteorder", "middle", 6}},
     "x.pt: a/byteorder: 'middle' is neither little nor big"},
    {{{"a/data.pkl", pickle, sizeof pickle - 1}, {"a/data/0", floats, 24}, {"a/version", "0", 1}},
     "x.pt: a/version: unsupported version '0': known versions are 1 to 10"},
    {{{"a/data.pkl", pickle, sizeof pickle - 1}, {"a/data/0", floats, 24}, {"a/version", "11", 2}},
     "x.pt: a/version: unsupported version '11': known versions are 1 to 10"},
    {{{"a/data.pkl", pickle, sizeof pickle - 1}, {"a/data/0", floats, 24}, {"a/version", "x", 1}},
     "x.pt: a/version: unsupported version 'x': known versions are 1 to 10"},
    {{{"a/data.pkl", pickle, sizeof pickle - 1},
      {"a/data/0", floats, 24},
      {"a/version", "3", 1},
      {"a/.data/version", "99", 2}},
     "x.pt: a/.data/version: unsupported version '99': known versions are 1 to 10"},
    {{{"a/data.pkl", pickle, sizeof pickle - 1}, {"a/data/0", floats, 24}}, "x.pt: a/version is missing"},
    {{{"a/data.pkl", pickle, sizeof pickle - 1}, {"a/version", "3", 1}},
     "x.pt: a/data.pkl: offset 81: storage a/data/0 is missing from the archive"},
    {{{"a/DATA.pkl", pickle, sizeof pickle - 1}, {"a/data/0", floats, 24}, {"a/version", "3", 1}},
     "x.pt: a zip archive, but not torch's: a/data.pkl is missing"},
    {{{"a/data.pkl", pickle, sizeof pickle - 1}, {"a/DATA/0", floats, 24}, {"a/version", "3", 1}},
     "x.pt: a/data.pkl: offset 81: storage a/data/0 is missing from the archive"},
    {{{"a/data.pkl", pickle, sizeof pickle - 1}, {"a/data/0", floats, 24}, {"a/version", "3", 1}, {"b/x", "", 0}},
     "x.pt: zip: member 'b/x' is outside the first member's folder 'a/'"},
    {{{"data.pkl", pickle, sizeof pickle - 1}},
     "x.pt: a zip archive, but not torch's: its first member is in no folder"},
    {{{"a/data.pkl", pickle, sizeof pickle - 2}, {"a/data/0", floats, 24}, {"a/version", "3", 1}},
     "x.pt: a/data.pkl: offset 109: the pickle ends without STOP"},
    {{{"a/data.pkl", "", 0}, {"a/version", "3", 1}}, "x.pt: a/data.pkl: offset 0: the pickle ends without STOP"},
};

static void check_containers(void)
{
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++) {
        size_t n = 0;
        while (n < 5 && containers[i].members[n].name != NULL)
            n++;
        archive_write("x.pt", containers[i].members, n);
        char *described = archive_describe("x.pt", &defaults);
        CHECK_TEXT(described, containers[i].says);
        free(described);
    }
}

/* data.pkl is read as a whole, so its CRC is looked at. */
static void check_crc(void)
{
    const struct archive_member members[] = {
        {"a/data.pkl", pickle, sizeof pickle - 1}, {"a/data/0", floats, sizeof floats}, {"a/version", "3", 1}};
    archive_write("x.pt", members, 3);
    FILE *file = fopen("x.pt", "r+b");
    fseek(file, 30 + 10 + 2, SEEK_SET);
    fputc('y', file); /* the name x */
    fclose(file);
    char *described = archive_describe("x.pt", &defaults);
    CHECK(text_starts_with(described, "x.pt: a/data.pkl: damaged: CRC error"));
    free(described);
}

/* Lists of lists that are all the same: a graph of few nodes and 2^40 paths. */
static void check_bomb(void)
{
    struct buffer bomb = {0};
    buffer_append_text(&bomb, SHORT);
    for (int i = 0; i < 40; i++)
        buffer_append_text(&bomb, "2\x86");
    buffer_append_text(&bomb, ".");
    const struct archive_member members[] = {
        {"a/data.pkl", bomb.bytes, bomb.length}, {"a/data/0", floats, 24}, {"a/version", "3", 1}};
    archive_write("x.pt", members, 3);
    char *described = archive_describe("x.pt", &defaults);
    CHECK_NAMED(strstr(described, "nodes are shared in too many ways") != NULL, "memo doubling with a tensor");
    free(described);
    buffer_free(&bomb);

    struct buffer deep = {0};
    buffer_append_text(&deep, SHORT);
    for (int i = 0; i < 300; i++)
        buffer_append_text(&deep, "\x85");
    buffer_append_text(&deep, ".");
    const struct archive_member nested[] = {
        {"a/data.pkl", deep.bytes, deep.length}, {"a/data/0", floats, 24}, {"a/version", "3", 1}};
    archive_write("x.pt", nested, 3);
    described = archive_describe("x.pt", &defaults);
    CHECK_NAMED(strstr(described, "nested more than 256 deep") != NULL, "a tensor 300 tuples deep");
    free(described);
    buffer_free(&deep);
}

static void append_text(struct buffer *out, size_t length, size_t number)
{
    buffer_append_text(out, "X");
    buffer_append_le(out, length, 4);
    buffer_printf(out, "%0*zu", (int)length, number);
}

/* One tensor under 10,000 names, each of which repeats a long name of what it is in. */
static void check_long_names(void)
{
    enum { N_NAMES = 10000, LONG_NAME = 5500, SHORT_NAME = 30 };
    struct buffer pickle_of_names = {0};
    buffer_append_text(&pickle_of_names, "}");
    append_text(&pickle_of_names, LONG_NAME, 0);
    buffer_append_text(&pickle_of_names, "}(");
    for (size_t i = 0; i < N_NAMES; i++) {
        append_text(&pickle_of_names, SHORT_NAME, i);
        buffer_append_text(&pickle_of_names, i == 0 ? SHORT "q\xc8" : "h\xc8");
    }
    buffer_append_text(&pickle_of_names, "us.");
    const struct archive_member members[] = {
        {"a/data.pkl", pickle_of_names.bytes, pickle_of_names.length}, {"a/data/0", floats, 24}, {"a/version", "3", 1}};
    archive_write("x.pt", members, 3);
    char *described = archive_describe("x.pt", &defaults);
    if (!CHECK(strstr(described, "exceed 4 MiB plus 8 bytes per byte of the pickle") != NULL))
        fprintf(stderr, "  actual: %.200s\n", described);
    free(described);
    buffer_free(&pickle_of_names);
}

/* One dict that is copied under many names, as OrderedDict(dict) says: n squared pairs of n. */
static void check_copies(void)
{
    enum { MANY = 20000 };
    struct buffer bomb = {0};
    buffer_append_text(&bomb, "(l(d");
    for (int i = 0; i < MANY; i++)
        buffer_printf(&bomb, "I%d\nNs", i);
    buffer_append_text(&bomb, "p0\na");
    for (int i = 0; i < MANY; i++)
        buffer_append_text(&bomb, "ccollections\nOrderedDict\n(g0\ntRa");
    buffer_append_text(&bomb, SHORT "a.");
    const struct archive_member members[] = {
        {"a/data.pkl", bomb.bytes, bomb.length}, {"a/data/0", floats, 24}, {"a/version", "3", 1}};
    archive_write("x.pt", members, 3);
    char *described = archive_describe("x.pt", &defaults);
    CHECK_NAMED(strstr(described, "items are copied to too many dicts") != NULL, "a dict copied often");
    free(described);
    buffer_free(&bomb);
}

/* What is spent on a pickle is a multiple of what is in the file: marks that shrink to a thousandth are not even
 * inflated, and a storage of zeros is shown up to eight times of what it shrinks to where all are more than a small
 * file may show. */
static void check_deflated(void)
{
    enum { MARKS = 8 << 20, ZEROS = 100 << 20 };
    static const char numel[] = "I104857600\n";
    char *marks = malloc(MARKS), *zeros = calloc(1, ZEROS), text[400];
    memset(marks, '(', MARKS);
    const struct archive_member bomb[] = {{"a/data.pkl", marks, MARKS, true}, {"a/version", "3\n", 2}};
    archive_write("x.pt", bomb, 2);
    char *described = archive_describe("x.pt", &defaults);
    CHECK_NAMED(strstr(described, "a/data.pkl: too large: 8388608 bytes, the limit is 4") != NULL, "a pickle of marks");
    free(described);

    snprintf(text, sizeof text,
             "(dVx\nctorch._utils\n_rebuild_tensor_v2\n((Vstorage\nctorch\nByteStorage\nV0\nVcpu\n%stQI0\n(%st("
             "I1\ntI00\nNtRs.",
             numel, numel);
    const struct archive_member large[] = {
        {"a/data.pkl", text, strlen(text), true}, {"a/data/0", zeros, ZEROS, true}, {"a/version", "3\n", 2}};
    archive_write("x.pt", large, 3);
    described = archive_describe("x.pt", &defaults);
    CHECK_TEXT(described, "x U8 [104857600] (expands to more than 8 times the stored size)");
    free(described);
    free(marks);
    free(zeros);
}

/* The numbers of tensors that are shown and that are refused, of `n` names for one tensor. */
static void count_aliases(const void *storage, size_t n_bytes, const char *numel, const char *size, const char *stride,
                          int n, size_t *ret_shown, size_t *ret_refused)
{
    struct buffer text = {0};
    struct error error;
    buffer_printf(&text,
                  "(lctorch._utils\n_rebuild_tensor_v2\n((Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI%s\ntQI0\n(I%s\nt("
                  "I%s\ntI00\n"
                  "NtRp0\na",
                  numel, size, stride);
    for (int i = 1; i < n; i++)
        buffer_append_text(&text, "g0\na");
    buffer_append_text(&text, ".");
    const struct archive_member members[] = {
        {"a/data.pkl", text.bytes, text.length}, {"a/data/0", storage, n_bytes}, {"a/version", "3", 1}};
    archive_write("x.pt", members, 3);
    const struct checkpoint *checkpoint = checkpoint_open("x.pt", readers, &defaults, &error);
    *ret_shown = *ret_refused = 0;
    for (size_t i = 0; checkpoint != NULL && i < checkpoint->tensors->n_tensors; i++)
        (*(checkpoint->tensors->tensors[i].refusal == NULL ? ret_shown : ret_refused))++;
    checkpoint_close(checkpoint);
    buffer_free(&text);
}

/* Copying the tree takes at most 64 MiB and 8 times the file: what is beyond that, of each storage, is listed only. */
static void check_aliases(void)
{
    enum { MIB = 1 << 20 };
    size_t shown, refused;
    void *storage = calloc(1, MIB);
    count_aliases(storage, MIB, "262144", "262144", "1", 2, &shown, &refused);
    CHECK_NAMED(shown == 2 && refused == 0, "tied weights");
    count_aliases(storage, MIB, "262144", "262144", "1", 60, &shown, &refused);
    CHECK_NAMED(shown == 60 && refused == 0, "as many names as a small file may have");
    count_aliases(storage, MIB, "262144", "262144", "1", 200, &shown, &refused);
    CHECK_NAMED(shown == 8 && refused == 192, "200 names");
    count_aliases(storage, 24, "6", "33554432", "0", 1, &shown, &refused);
    CHECK_NAMED(shown == 0 && refused == 1, "a stride of 0");
    free(storage);
}

int main(void)
{
    little_endian(floats, sizeof floats / sizeof *floats, sizeof *floats);
    little_endian(swapped, sizeof swapped / sizeof *swapped, sizeof *swapped);
    files_begin();
    check_rows();
    check_containers();
    check_crc();
    check_bomb();
    check_long_names();
    check_copies();
    check_aliases();
    check_deflated();
    files_remove();
    return check_done();
}
