/* The canonical model: which tensors it has, as what, and whether a file is that already. What of tied tensors is left
 * out is what save_pretrained() leaves out of models whose classes name lm_head.weight in _tied_weights_keys. */
#include "models/huggingface/hf_model.h"
#include "models/formats.h"

#include "quant/blocks/dtype.h"
#include "tests/unit/formats/torch/archive.h"
#include "tests/unit/write_safetensors.h"

static const struct open_options defaults;

static const struct checkpoint *open_path(const char *path, const struct open_options *options)
{
    struct error error = {""};
    const struct checkpoint *checkpoint = checkpoint_open(path, formats, options, &error);
    files_must(checkpoint != NULL, error.message);
    return checkpoint;
}

/* "NAME TYPE" of each tensor, or the error. A set that is the same is not a copy. */
static const char *describe(const struct checkpoint *checkpoint, const struct dtype *type, char text[1024])
{
    struct error error;
    struct arena *arena = arena_new();
    const struct hf_model *model = hf_model_new(arena, checkpoint, type, &error);
    snprintf(text, 1024, "%s", model == NULL ? error.message : "");
    char *out = text;
    for (size_t i = 0; model != NULL && i < model->tensors->n_tensors; i++)
        out += sprintf(out, "%s%s %s", i > 0 ? ", " : "", model->tensors->tensors[i].name,
                       hf_written(model, &model->tensors->tensors[i])->name);
    if (model != NULL)
        CHECK((model->tensors == checkpoint->tensors) == (model->tensors->n_tensors == checkpoint->tensors->n_tensors));
    arena_free(arena);
    return text;
}

/* A model of torch, of two storages of 16 bytes. */
static const struct checkpoint *open_torch(const char *pickle, const char *config)
{
    static const unsigned char storage[16];
    const struct archive_member members[] = {{"a/data.pkl", pickle, strlen(pickle)},
                                             {"a/data/0", storage, sizeof storage},
                                             {"a/data/1", storage, sizeof storage},
                                             {"a/version", "3", 1}};
    archive_write("m/pytorch_model.bin", members, 4);
    remove("m/config.json");
    if (config != NULL)
        files_write_text("m/config.json", config);
    return open_path("m", &defaults);
}

#define FLOATS           PICKLE_STORAGE("FloatStorage", "0", "4")
#define SQUARE(name)     "V" name "\n" PICKLE_TENSOR(FLOATS, "0", "I2\nI2\n", "I2\nI1\n") "s"
#define TRANSPOSED(name) "V" name "\n" PICKLE_TENSOR(FLOATS, "0", "I2\nI2\n", "I1\nI2\n") "s"
#define TAIL(name)       "V" name "\n" PICKLE_TENSOR(FLOATS, "2", "I2\n", "I1\n") "s"
#define HEAD(name)       "V" name "\n" PICKLE_TENSOR(FLOATS, "0", "I2\n", "I1\n") "s"
#define FLAT(name)       "V" name "\n" PICKLE_TENSOR(FLOATS, "0", "I4\n", "I1\n") "s"

static void test_tied(void)
{
    static const struct {
        const char *pickle, *config, *expected;
    } rows[] = {
        {SQUARE("embed") SQUARE("lm_head.weight"), "{}", "embed F32"},
        {SQUARE("lm_head.weight") SQUARE("embed"), NULL, "embed F32"},
        {SQUARE("embed") SQUARE("lm_head.weight"), "{\"tie_word_embeddings\":true}", "embed F32"},
        {SQUARE("embed") SQUARE("lm_head.weight"), "{\"tie_word_embeddings\":false}", "embed F32, lm_head.weight F32"},
        {SQUARE("embed") SQUARE("other"), "{}", "embed F32, other F32"},
        {SQUARE("embed") SQUARE("other") SQUARE("x.lm_head.weight"), "{}", "embed F32, other F32"},
        {HEAD("embed") TAIL("lm_head.weight"), "{}", "embed F32, lm_head.weight F32"},
        {SQUARE("embed") TAIL("lm_head.weight"), "{}", "embed F32, lm_head.weight F32"},
        {SQUARE("embed") FLAT("lm_head.weight"), "{}", "embed F32, lm_head.weight F32"},
        {SQUARE("embed") TRANSPOSED("lm_head.weight"), "{}", "embed F32, lm_head.weight F32"},
        {SQUARE("lm_head.weight"), "{}", "lm_head.weight F32"},
        /* one name stays, whatever it is */
        {SQUARE("embed_out.weight") SQUARE("lm_head.weight"), "{}", "lm_head.weight F32"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char pickle[2048], text[1024];
        snprintf(pickle, sizeof pickle, "(d%s.", rows[i].pickle);
        const struct checkpoint *checkpoint = open_torch(pickle, rows[i].config);
        CHECK_TEXT(describe(checkpoint, NULL, text), rows[i].expected);
        CHECK(checkpoint_notes(checkpoint) == 0);
        checkpoint_close(checkpoint);
    }
}

/* Nor is a config.json that cannot be read taken for one that says nothing. */
static void test_tied_by_unreadable(void)
{
    static const char said[] = "config.json: a symbolic link to ";
    char text[1024];
    files_write_text("config-elsewhere", "{\"tie_word_embeddings\":false}");
    checkpoint_close(open_torch("(d" SQUARE("embed") ".", NULL));
    files_link("m/config.json", "../config-elsewhere");
    const struct checkpoint *checkpoint = open_path("m", &defaults);
    CHECK_TEXT(describe(checkpoint, NULL, text), "embed F32");
    checkpoint_close(checkpoint);
    checkpoint_close(open_torch("(d" SQUARE("embed") SQUARE("lm_head.weight") ".", NULL));
    files_link("m/config.json", "../config-elsewhere");
    checkpoint = open_path("m", &defaults);
    CHECK_NAMED(strncmp(describe(checkpoint, NULL, text), said, strlen(said)) == 0, text);
    checkpoint_close(checkpoint);
    remove("m/config.json");
}

#define COMPLEX(name)                                                                                                  \
    "V" name "\n" PICKLE_TENSOR(PICKLE_STORAGE("ComplexDoubleStorage", "1", "1"), "0", "I1\n", "I1\n") "s"

static void test_left_out(void)
{
    char text[1024];
    const struct checkpoint *checkpoint = open_torch("(d" COMPLEX("c") ".", "{}");
    CHECK_TEXT(describe(checkpoint, NULL, text), "no tensor can be stored: 'c': safetensors has no such dtype");
    checkpoint_close(checkpoint);
    checkpoint = open_torch("(d" COMPLEX("c") SQUARE("a") COMPLEX("d") ".", "{}");
    CHECK_TEXT(describe(checkpoint, NULL, text), "a F32");
    CHECK(checkpoint_notes(checkpoint) == 1);
    CHECK_TEXT(checkpoint_note_at(checkpoint, 0).text,
               "2 tensors are left out, 'c' first: safetensors has no such dtype");
    checkpoint_close(checkpoint);
}

#define MIXED                                                                                                          \
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"                                                 \
    "\"b\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[4,8]},"                                                  \
    "\"c\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[8,10]}}"
#define ONE "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"

static struct source *whole(const struct checkpoint *checkpoint, const struct dtype *type)
{
    struct error error;
    struct arena *arena = arena_new();
    const struct hf_model *model = hf_model_new(arena, checkpoint, type, &error);
    struct source *source = CHECK(model != NULL) ? model->whole : NULL;
    arena_free(arena);
    return source;
}

static void test_types(void)
{
    char text[1024];
    files_write_safetensors("mixed.safetensors", MIXED, strlen(MIXED), 10);
    const struct checkpoint *checkpoint = open_path("mixed.safetensors", &defaults);
    CHECK_TEXT(describe(checkpoint, NULL, text), "a F32, b I32, c F16");
    CHECK_TEXT(describe(checkpoint, &bf16_dtype, text), "a BF16, b I32, c BF16");
    CHECK(whole(checkpoint, NULL) == checkpoint->sources[0]);
    CHECK_NAMED(whole(checkpoint, &f32_dtype) == NULL, "one of them becomes another type");
    checkpoint_close(checkpoint);
}

static void test_whole(void)
{
    static const struct open_options trailing = {.allow_trailing = true};
    files_write_safetensors("one.safetensors", ONE, strlen(ONE), 4);
    const struct checkpoint *checkpoint = open_path("one.safetensors", &defaults);
    CHECK_NAMED(whole(checkpoint, &f32_dtype) == checkpoint->sources[0], "the type that it has");
    CHECK_NAMED(whole(checkpoint, &f16_dtype) == NULL, "another type");
    checkpoint_close(checkpoint);
    files_write_safetensors("one.safetensors", ONE, strlen(ONE), 5);
    checkpoint = open_path("one.safetensors", &trailing);
    CHECK_NAMED(whole(checkpoint, NULL) == NULL, "a byte after the tensors");
    checkpoint_close(checkpoint);
    checkpoint = open_torch("(d" SQUARE("a") ".", NULL);
    CHECK_NAMED(whole(checkpoint, NULL) == NULL, "a file of torch");
    checkpoint_close(checkpoint);
}

static void test_model_type(void)
{
    static const struct {
        const char *config, *expected;
    } rows[] = {{"{\"model_type\":\"gpt2\"}", "gpt2"}, {"{}", NULL}, {"{\"model_type\":3}", NULL}, {"{", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error;
        const struct checkpoint *checkpoint = open_torch("(d" SQUARE("a") ".", rows[i].config);
        const struct hf_model *model = hf_model_of(checkpoint, &error);
        if (CHECK(model != NULL) && rows[i].expected != NULL)
            CHECK_TEXT(model->model_type, rows[i].expected);
        else if (model != NULL)
            CHECK_NAMED(model->model_type == NULL, rows[i].config);
        checkpoint_close(checkpoint);
    }
}

static void test_refusals(void)
{
    static const struct dtype opaque = {.name = "X", .kind = DTYPE_BLOCK};
    const struct hf_model own = {0}, in_bf16 = {.type = &bf16_dtype};
    const struct tensor good = {.name = "a", .name_length = 1, .dtype = &f32_dtype};
    const struct tensor metadata = {.name = "__metadata__", .name_length = 12, .dtype = &f32_dtype};
    const struct tensor latin = {.name = "\xe4", .name_length = 1, .dtype = &f32_dtype};
    const struct tensor number = {.name = "a", .name_length = 1, .dtype = dtype_by_name("C64")};
    const struct tensor blocks = {.name = "a", .name_length = 1, .dtype = &q4_0_dtype};
    const struct tensor unknown = {.name = "a", .name_length = 1, .dtype = &opaque};
    const struct tensor refused = {.name = "a", .name_length = 1, .dtype = &f32_dtype, .refusal = "because"};
    CHECK(hf_refusal(&own, &good) == NULL && hf_refusal(&in_bf16, &good) == NULL);
    CHECK(hf_refusal(&own, &number) == NULL && hf_refusal(&in_bf16, &number) == NULL);
    CHECK_TEXT(hf_refusal(&own, &blocks), "safetensors has no such dtype");
    CHECK(hf_refusal(&in_bf16, &blocks) == NULL);
    CHECK_TEXT(hf_refusal(&own, &refused), "because");
    CHECK_TEXT(hf_refusal(&own, &metadata), "its name is reserved in safetensors");
    CHECK_TEXT(hf_refusal(&own, &latin), "its name is not UTF-8");
    CHECK_TEXT(hf_refusal(&in_bf16, &unknown), "its blocks cannot be dequantized");
}

/* What a GGUF's quantized weights are dequantized to, and what stays in F32 beside them. */
static void test_written(void)
{
    static const struct {
        const char *name, *dtype;
        uint8_t rank;
        const char *own, *dequantized, *in_f16;
    } rows[] = {
        {"a.weight", "F32", 2, "F32", "BF16", "F16"},     {"a.weight", "F32", 1, "F32", "F32", "F16"},
        {"a.mixer.A_log", "F32", 2, "F32", "F32", "F16"}, {"a.weight", "Q4_0", 2, "Q4_0", "BF16", "F16"},
        {"a.weight", "F16", 2, "F16", "F16", "F16"},      {"a.weight", "I64", 2, "I64", "I64", "I64"},
    };
    const struct hf_model own = {0}, dequantized = {.of_blocks = &bf16_dtype}, in_f16 = {.type = &f16_dtype};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct tensor tensor = {
            .name = rows[i].name, .rank = rows[i].rank, .dtype = dtype_by_name(rows[i].dtype)};
        CHECK_TEXT(hf_written(&own, &tensor)->name, rows[i].own);
        CHECK_TEXT(hf_written(&dequantized, &tensor)->name, rows[i].dequantized);
        CHECK_TEXT(hf_written(&in_f16, &tensor)->name, rows[i].in_f16);
    }
}

static void test_generates(void)
{
    static const struct {
        const char *architecture;
        bool generates;
    } rows[] = {{"LlamaForCausalLM", true}, {"GPT2LMHeadModel", true},  {"T5ForConditionalGeneration", true},
                {"BertModel", false},       {"ForCausalLMTool", false}, {NULL, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct hf_model model = {.class_name = rows[i].architecture};
        CHECK(hf_generates(&model) == rows[i].generates);
    }
}

int main(void)
{
    files_begin();
    test_tied();
    test_tied_by_unreadable();
    test_left_out();
    test_types();
    test_whole();
    test_model_type();
    test_refusals();
    test_written();
    test_generates();
    files_remove();
    return check_done();
}
