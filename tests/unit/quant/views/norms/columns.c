/* Columns divided by their norms: expected values of torch 2.9.1. */
#include "models/convert/model.h"
#include "models/formats.h"
#include "quant/views/convert.h"
#include "quant/views/norms.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"
#include "tests/unit/write_safetensors.h"

#include <math.h>
#include <string.h>

enum { ROWS = 3000, COLUMNS = 3, N = ROWS * COLUMNS };

static const struct view *numbers(struct arena *arena, const struct dtype *dtype)
{
    static const uint64_t shape[2] = {ROWS, COLUMNS};
    float *values = arena_alloc(arena, N * sizeof *values);
    for (int i = 0; i < N; i++)
        values[i] = (float)(i * 7919 % 10007) / 16384 - 0.25f;
    return view_convert(arena, view_numbers(arena, 2, shape, values), dtype);
}

/* The first row and the last one; and the same again in another order, of which some are not aligned. */
static void check_ends(struct arena *arena, const struct dtype *dtype, const float *expected)
{
    float first[COLUMNS], last[COLUMNS];
    unsigned char bytes[3 * sizeof(float) + 1];
    struct error error;
    const struct view *view = view_normalize_columns(arena, numbers(arena, dtype));
    CHECK(view->dtype == &f32_dtype && read_numbers(view, N - COLUMNS, COLUMNS, last, &error));
    CHECK(read_numbers(view, 0, COLUMNS, first, &error));
    CHECK(memcmp(first, expected, sizeof first) == 0 && memcmp(last, expected + COLUMNS, sizeof last) == 0);
    CHECK(read_numbers(view, N - 2, 2, bytes + 1, &error) && memcmp(bytes + 1, expected + 4, 2 * sizeof(float)) == 0);
}

/* A column of zeros stays so, and small ones are divided by more than their norm. */
static void check_small(struct arena *arena)
{
    static const float values[] = {0, 1e-8f, 0, -1e-7f}, expected[] = {0, 0x1.9894c2p-5f, 0, -0x1.feb9f2p-2f};
    static const uint64_t shape[2] = {2, 2}, none[2] = {0, 0};
    float read[4];
    struct error error;
    const struct view *view = view_normalize_columns(arena, view_numbers(arena, 2, shape, values));
    CHECK(read_numbers(view, 0, 4, read, &error) && memcmp(read, expected, sizeof read) == 0);
    view = view_normalize_columns(arena, view_numbers(arena, 2, none, values));
    CHECK(view->n_elements == 0 && read_numbers(view, 0, 0, NULL, &error));
}

#define LING                                                                                                           \
    "{\"architectures\":[\"BailingMoeForCausalLM\"],\"vocab_size\":8,\"hidden_size\":4,\"num_hidden_layers\":0,"       \
    "\"num_attention_heads\":2,\"intermediate_size\":4,\"first_k_dense_replace\":0,\"moe_intermediate_size\":4,"       \
    "\"num_shared_experts\":1,\"norm_topk_prob\":true,\"norm_head\":"

/* The first row of the head in F32, which is -0.0 in each row of the file but for a 1.5 in the second column. */
static void check_head(const char *config, const struct dtype *dtype, float second)
{
    static const struct open_options options;
    struct error error = {""};
    float row[4];
    files_write_text("config.json", config);
    const struct checkpoint *checkpoint = checkpoint_open(".", formats, &options, &error);
    struct gguf_model *model = checkpoint ? gguf_model_new(checkpoint, NULL, &error) : NULL;
    const struct tensor *head = model ? tensor_set_find_text(model->tensors, "output.weight") : NULL;
    if (!CHECK_NAMED(head != NULL, error.message))
        return;
    CHECK(head->dtype == dtype && convert_values(head->view, 0, 4, row, &error));
    CHECK(row[0] == 0 && signbit(row[0]) && row[1] == second);
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

static void check_heads(void)
{
    struct safetensors file = {0};
    uint16_t values[32];
    for (int i = 0; i < 32; i++)
        values[i] = i % 4 == 1 ? 0x3fc0 : 0x8000;
    files_begin();
    safetensors_add(&file, "model.word_embeddings.weight", "BF16", "8,4", values, sizeof values);
    safetensors_add(&file, "lm_head.weight", "BF16", "8,4", values, sizeof values);
    safetensors_write(&file, "model.safetensors");
    files_write_text("tokenizer.json", "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},"
                                       "\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}");
    check_head(LING "true}", &f32_dtype, 0x1.6a09e8p-2f);
    check_head(LING "false}", dtype_by_name("BF16"), 1.5f);
    files_remove();
}

int main(void)
{
    struct arena *arena = arena_new();
    check_heads();
    check_ends(arena, &f32_dtype,
               (const float[]){-0x1.949ca6p-6f, 0x1.79bc9ep-6f, 0x1.56b7acp-7f, 0x1.475d3ep-6f, 0x1.e48be6p-8f,
                               -0x1.548b6cp-8f});
    check_ends(arena, &f16_dtype,
               (const float[]){-0x1.949caep-6f, 0x1.79d5ep-6f, 0x1.56b78cp-7f, 0x1.475d44p-6f, 0x1.e48bdap-8f,
                               -0x1.548b4cp-8f});
    check_small(arena);
    arena_free(arena);
    return check_done();
}
