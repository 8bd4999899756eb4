/* The names of tensors in a pickle: the way to each of them. */
#include "base/little_endian.h"
#include "base/text.h"
#include "tests/unit/formats/torch/archive.h"

#define FLOATS PICKLE_STORAGE("FloatStorage", "0", "6") /* 0 1 2 3 4 5 */
#define SHORT  PICKLE_TENSOR(FLOATS, "4", "I1\n", "I1\n")

#define RUN(tensor, pipeline, expert)                                                                                  \
    "cargparse\nNamespace\n)\x81(dVtensor_model_parallel_size\n" tensor "\nsVpipeline_model_parallel_size\n" pipeline  \
    "\nsVexpert_model_parallel_size\n" expert "\nsb"
#define PART(tensor, pipeline, expert)                                                                                 \
    "x.pt: a part of a model: the file of one rank of a Megatron checkpoint with tensor_model_parallel_size " tensor   \
    ", pipeline_model_parallel_size " pipeline " and expert_model_parallel_size " expert                               \
    "; join the ranks with Megatron's converter"

static const struct {
    const char *pickle, *says;
} rows[] = {
    /* Names. */
    {"(dVa.b\n" SHORT "sVa\n(dVb\n" SHORT "ss.", "a.b F32 [1] 4\na.b~2 F32 [1] 4"},
    {"(dI1\n" SHORT "sV1\n" SHORT "sV1~2\n" SHORT "s.", "1 F32 [1] 4\n1~3 F32 [1] 4\n1~2 F32 [1] 4"},
    {"(dVa\nNsVb\n" SHORT "sVa\n" SHORT "s.", "a F32 [1] 4\nb F32 [1] 4"},
    {"(l" SHORT "a(dVk\n" SHORT "sa.", "0 F32 [1] 4\n1.k F32 [1] 4"},
    {"(dVs\n(" SHORT "tsI01\n" SHORT "sN" SHORT "s(I1\nVa\nt" SHORT "s.",
     "s.0 F32 [1] 4\nTrue F32 [1] 4\nNone F32 [1] 4\n(1, a) F32 [1] 4"},
    {"(dVstate_dict\n(dVw\n" SHORT "ssVepoch\nI3\ns.", "w F32 [1] 4\n{\"epoch\":3}"},
    {"(dVmodel\n(dVstate_dict\n(dVmodule.w\n" SHORT "sVmodule.v\n" SHORT "sss.", "w F32 [1] 4\nv F32 [1] 4"},
    {"(dVmodel\n(dVw\n" SHORT "ssVother\n" SHORT "s.", "model.w F32 [1] 4\nother F32 [1] 4"},
    {"(dVmodule.w\n" SHORT "sVw\n" SHORT "s.", "module.w F32 [1] 4\nw F32 [1] 4"},
    {"ccollections\nOrderedDict\n((l(lVw\na" SHORT "aatR.", "w F32 [1] 4"},
    {"ccollections\nOrderedDict\n(tRVw\n" SHORT "s(dV_metadata\nNsb.", "w F32 [1] 4"},
    {"clib\nNet\n)\x81(dV_modules\n(dVfc\nclib\nLinear\n)\x81(dV_parameters\n(dVweight\n" SHORT "ssbssb.",
     "fc.weight F32 [1] 4"},
    {SHORT ".", "x F32 [1] 4"},

    /* Walks. */
    {"(dp0\nVself\ng0\nsVw\n" SHORT "s.", "w F32 [1] 4"},
    {"(lp0\ng0\na" SHORT "a.", "1 F32 [1] 4"},
    {"clib\nA\n)\x81p0\ng0\nb.", "{\"lib.A\":[]}"},
    {"(dVe\nI1\nsVa\ncargparse\nNamespace\n)\x81(dVlr\nF0.5\nsVt\n" SHORT "sbsVl\n(lVq\naNaI01\naF3\na" SHORT "as.",
     "a.t F32 [1] 4\nl.4 F32 [1] 4\n{\"e\":1,\"a\":{\"lr\":0.5},\"l\":[\"q\",null,true,3.0,null]}"},

    /* Keys that are not texts, as Python's str() has them. */
    {"(dF0.1\n" SHORT "sF1e22\n" SHORT "sI-3\n" SHORT "s.", "0.1 F32 [1] 4\n1e+22 F32 [1] 4\n-3 F32 [1] 4"},
    {"(dC\2ab" SHORT "s(F2\nNC\1xt" SHORT "s.", "ab F32 [1] 4\n(2.0, None, x) F32 [1] 4"},

    /* A key that is set again has its last value at its first place. True is another key than 1 here. */
    {"(dVa\n(dVx\n" SHORT "ssVb\n" SHORT "sVa\n(dVy\n" SHORT "ss.", "a.y F32 [1] 4\nb F32 [1] 4"},
    {"(dI1\n" SHORT "sI01\n" SHORT "s.", "1 F32 [1] 4\nTrue F32 [1] 4"},

    /* Modules: parameters, buffers and modules are in their state, which may be a pair of it and of slots. */
    {"clib\nNet\n)\x81((dV_buffers\n(dVmean\n" SHORT "ssVtraining\nI01\ns(dVslot\n" SHORT "stb.",
     "mean F32 [1] 4\nslot F32 [1] 4\n{\"training\":true}"},
    {"(dV_parameters\n(dVw\n" SHORT "ss.", "_parameters.w F32 [1] 4"},
    {"(dVnet\nclib\nNet\n)\x81(dV_parameters\n(dVw\n" SHORT "ssbsVlist\n(l" SHORT "as.",
     "net.w F32 [1] 4\nlist.0 F32 [1] 4"},

    /* A wrapper is opened where nothing else holds tensors, and where it is no tensor itself. */
    {"(dVmodel\n" SHORT "s.", "model F32 [1] 4"},
    {"(dVstate_dict\n(dVmodel\n(dVw\n" SHORT "sss.", "w F32 [1] 4"},
    {"(dVweights\n(dVw\n" SHORT "ss.", "weights.w F32 [1] 4"},

    /* Ranks of Megatron, whose arguments are an object, or a dict. */
    {"(dVargs\n" RUN("I1", "I1", "I1") "sVmodel\n(dVw\n" SHORT "ss.",
     "w F32 [1] 4\n{\"args\":{\"tensor_model_parallel_size\":1,\"pipeline_model_parallel_size\":1,"
     "\"expert_model_parallel_size\":1}}"},
    {"(dVargs\n" RUN("I2", "I1", "I1") "sVmodel\n(dVw\n" SHORT "ss.", PART("2", "1", "1")},
    {"(dVargs\n" RUN("I1", "I4", "I8") "sVmodel0\n(dVw\n" SHORT "ss.", PART("1", "4", "8")},
    {"(dVargs\n(dVtensor_model_parallel_size\nI2\nssVmodel\n(dVw\n" SHORT "ss.", PART("2", "1", "1")},
    {"(dVargs\n(dVtensor_model_parallel_size\nI2\nssVweights\n(dVw\n" SHORT "ss.",
     "weights.w F32 [1] 4\n{\"args\":{\"tensor_model_parallel_size\":2}}"},
};

static float floats[] = {0, 1, 2, 3, 4, 5};
static const struct open_options defaults;

static char *describe(const void *pickle, size_t length)
{
    const struct archive_member members[] = {
        {"a/data.pkl", pickle, length}, {"a/data/0", floats, sizeof floats}, {"a/version", "3\n", 2}};
    archive_write("x.pt", members, 3);
    return archive_describe("x.pt", &defaults);
}

static void check_rows(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *described = describe(rows[i].pickle, strlen(rows[i].pickle));
        CHECK_TEXT(described, rows[i].says);
        free(described);
    }
}

/* A tensor under a key of `n` bytes, or a tuple of 64 of them. */
static void check_length(size_t n, bool is_tuple, const char *wanted)
{
    struct buffer pickle = {0};
    buffer_append_text(&pickle, is_tuple ? "(d(V" : "(dV");
    for (size_t i = 0; i < n; i++)
        buffer_append_text(&pickle, "k");
    buffer_append_text(&pickle, "\n");
    buffer_append_text(&pickle, is_tuple ? "p1\n" : "");
    for (int i = 1; is_tuple && i < 64; i++)
        buffer_append_text(&pickle, "g1\n");
    buffer_append_text(&pickle, is_tuple ? "t" SHORT "s." : SHORT "s.");
    char *described = describe(pickle.bytes, pickle.length);
    if (wanted == NULL)
        CHECK(strlen(described) > n && strcmp(described + n, " F32 [1] 4") == 0);
    else
        CHECK(strstr(described, wanted) != NULL);
    free(described);
    buffer_free(&pickle);
}

int main(void)
{
    little_endian(floats, sizeof floats / sizeof *floats, sizeof *floats);
    files_begin();
    check_rows();
    check_length(TENSOR_MAX_NAME, false, NULL);
    check_length(TENSOR_MAX_NAME + 1, false, "a name longer than 65536 bytes");
    check_length(1024, true, "a name longer than 65536 bytes");
    check_length(1 << 20, true, "a name longer than 65536 bytes");
    files_remove();
    return check_done();
}
