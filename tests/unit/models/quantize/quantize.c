/* The layout of a quantized file. Which types tensors get is tested in mix.c; tests/data/gguf/quantized.gguf is the
 * tool's, see tests/data/make_quantized.py. */
#include "models/quantize/quantize.h"

#include "models/families/families.h"
#include "tests/unit/check.h"
#include "tests/unit/models/laid_out.h"

#include <stdlib.h>

static const struct {
    const char *name;
    unsigned rank;
    uint64_t shape[2];
} tensors[] = {
    {"token_embd.weight", 2, {3, 64}},   {"blk.0.attn_norm.weight", 1, {64}}, {"blk.10.attn_v.weight", 2, {3, 64}},
    {"blk.2.attn_v.weight", 2, {3, 64}}, {"blk.2.attn_v.bias", 2, {1, 64}},   {"output_norm.weight", 1, {64}},
    {"blk.2.attn_k.weight", 2, {3, 64}},
};
enum { N_TENSORS = sizeof tensors / sizeof *tensors };

/* The model of the script, as the converter would have left it. */
static struct gguf_model *make_model(struct arena *arena)
{
    static const float zeros[3 * 64];
    struct gguf_model *model = arena_alloc(arena, sizeof *model);
    static const struct family family = {.name = "llama"};
    model->family = &family;
    gguf_set_text(&model->kvs, "general.architecture", "llama");
    gguf_set_text(&model->kvs, "general.type", "model");
    gguf_set_u32(&model->kvs, "llama.block_count", 11);
    gguf_set_u32(&model->kvs, "llama.context_length", 64);
    gguf_set_u32(&model->kvs, "llama.embedding_length", 64);
    gguf_set_u32(&model->kvs, "llama.feed_forward_length", 64);
    gguf_set_u32(&model->kvs, "llama.attention.head_count", 1);
    gguf_set_f32(&model->kvs, "llama.attention.layer_norm_rms_epsilon", 1e-5);
    gguf_set_u32(&model->kvs, "general.file_type", 0);
    gguf_set_u32(&model->kvs, "llama.vocab_size", 3);
    gguf_set_u32(&model->kvs, "general.quantization_version", 2);

    struct buffer tokens = {0};
    gguf_append_string(&tokens, "a", 1);
    gguf_append_string(&tokens, "b", 1);
    gguf_append_string(&tokens, "c", 1);
    gguf_set_array(&model->kvs, "tokenizer.ggml.tokens", GGUF_STRING, 3, &tokens);

    model->tensors = tensor_set_new(arena);
    for (size_t i = 0; i < N_TENSORS; i++)
        tensor_set_add_view(model->tensors, tensors[i].name,
                            view_numbers(arena, tensors[i].rank, tensors[i].shape, zeros));
    struct error error;
    CHECK(tensor_set_seal(model->tensors, &error));
    model->arena = arena;
    return model;
}

static void free_model(struct gguf_model *model)
{
    gguf_kvs_free(&model->kvs);
}

static void as_the_tool(const struct gguf_edition *edition)
{
    char path[4096], expected[8192];
    snprintf(path, sizeof path, "%s/gguf/quantized.gguf", getenv("WFS_TEST_DATA"));
    FILE *file = fopen(path, "rb");
    size_t size = file == NULL ? 0 : fread(expected, 1, sizeof expected, file);
    struct artifact artifact;
    struct error error;
    if (!CHECK(quantize_artifact(edition, mix_find("Q4_0"), &(struct quantize_options){0}, &artifact, &error)))
        return;
    struct buffer file_made = laid_out(&artifact);
    CHECK(file_made.length == size);
    CHECK_NAMED(memcmp(file_made.bytes, expected, size) == 0, "the file is the tool's");
    static const char *const order[] = {"output_norm.weight",  "token_embd.weight", "blk.0.attn_norm.weight",
                                        "blk.2.attn_k.weight", "blk.2.attn_v.bias", "blk.2.attn_v.weight",
                                        "blk.10.attn_v.weight"};
    for (size_t i = 0; i < N_TENSORS; i++)
        CHECK_TEXT(artifact.tensors[i].tensor->name, order[i]);
    buffer_free(&file_made);
    artifact_free(&artifact);
    if (file != NULL)
        fclose(file);
}

static void refusals(const struct gguf_edition *edition)
{
    struct artifact artifact;
    struct error error;
    const char *const bad[] = {"(=q4_0", NULL};
    CHECK(!quantize_artifact(edition, mix_find("Q4_0"), &(struct quantize_options){.tensor_types = bad}, &artifact,
                             &error));
    CHECK_NAMED(strstr(error.message, "(=q4_0") != NULL, "a pattern that is none");
    const struct gguf_edition plain = {.model = edition->model};
    CHECK_NAMED(!quantize_artifact(&plain, mix_find("Q4_0"), &(struct quantize_options){0}, &artifact, &error),
                "a plain container");
}

/* A matrix that knows of one of the three matrices in layers, and of one that is of another model. */
static void unweighed(const struct gguf_edition *edition)
{
    static const float columns[64];
    struct imatrix_entry entries[] = {{"blk.2.attn_k.weight", columns, 64, true},
                                      {"blk.3.attn_v.weight", columns, 64, true}};
    const struct imatrix imatrix = {.file = "m", .entries = entries, .n_entries = 2};
    const struct quantize_options options = {.imatrix = &imatrix};
    const char *first = NULL;
    size_t n;
    CHECK(quantize_unweighed(edition, &options, &n, &first) == 2 && n == 3);
    CHECK_TEXT(first, "blk.10.attn_v.weight");
    const char *const exclude[] = {"attn_k", NULL};
    const struct quantize_options filtered = {.imatrix = &imatrix, .filter = {.exclude = exclude}};
    CHECK_NAMED(quantize_unweighed(edition, &filtered, &n, &first) == 3, "one that is excluded says nothing");
}

int main(void)
{
    struct arena *arena = arena_new();
    struct gguf_model *model = make_model(arena);
    const struct gguf_edition edition = {.model = model, .outline = quantize_outline_of(model, arena)};
    as_the_tool(&edition);
    unweighed(&edition);
    refusals(&edition);
    free_model(model);
    arena_free(arena);
    return check_done();
}
