/* Which type a tensor has in each of the converter's outputs, and where it lies. Rules: prepare_tensors() in
 * conversion/base.py.
 */
#include "models/model.h"
#include "quant/convert.h"
#include "tests/unit/check.h"
#include "tests/unit/models/laid_out.h"

#include <stdlib.h>

static const struct {
    const char *name;
    unsigned rank;
    uint64_t shape[4];
    const char *f32, *f16, *bf16, *q8_0, *tq1_0; /* the type in each output */
} rows[] = {
    {"token_embd.weight", 2, {4, 256}, "F32", "F16", "BF16", "Q8_0", "F16"},
    {"output.weight", 2, {4, 256}, "F32", "F16", "BF16", "Q8_0", "F16"},
    {"blk.0.attn_q.weight", 2, {4, 256}, "F32", "F16", "BF16", "Q8_0", "TQ1_0"},
    {"blk.0.attn_q.weight", 2, {4, 64}, "F32", "F16", "BF16", "Q8_0", "F16"}, /* no whole block of 256 */
    {"blk.0.attn_q.weight", 2, {4, 40}, "F32", "F16", "BF16", "F16", "F16"},
    {"blk.0.attn_q.bias", 1, {256}, "F32", "F32", "F32", "F32", "F32"},
    {"blk.0.attn_norm.weight", 1, {256}, "F32", "F32", "F32", "F32", "F32"},
    {"blk.0.attn_q_norm.weight", 2, {4, 256}, "F32", "F32", "F32", "F32", "F32"},
    {"blk.0.ffn_down_exps.bias", 2, {4, 256}, "F32", "F32", "F32", "F32", "F32"},
    {"blk.0.ffn_down_exps.weight", 3, {2, 2, 256}, "F32", "F16", "BF16", "Q8_0", "TQ1_0"},
    {"blk.0.ffn_gate_inp.weight", 2, {4, 256}, "F32", "F32", "F32", "F32", "F32"},
    {"blk.10.ffn_gate_inp_shexp.weight", 2, {1, 256}, "F32", "F32", "F32", "F32", "F32"},
    {"position_embd.weight", 2, {4, 256}, "F32", "F32", "F32", "F32", "F32"},
    {"token_types.weight", 2, {2, 256}, "F32", "F32", "F32", "F32", "F32"},
    {"blk.0.ssm_a", 2, {4, 256}, "F32", "F32", "F32", "F32", "F32"},
    {"blk.0.ssm_conv1d.weight", 2, {4, 256}, "F32", "F32", "F32", "F32", "F32"},
    {"dec.blk.0.attn_rel_b.weight", 2, {32, 4}, "F32", "F16", "BF16", "F16", "F16"},
};

static const char *const outtypes[] = {"f32", "f16", "bf16", "q8_0", "tq1_0"};

/* A model of one tensor of zeros. */
static struct gguf_model *one_tensor(struct arena *arena, const char *name, unsigned rank, const uint64_t *shape)
{
    static const float zeros[4 * 256];
    static const struct dtype *forced[1];
    struct gguf_model *model = arena_alloc(arena, sizeof *model);
    *model = (struct gguf_model){
        .arena = arena, .tensors = tensor_set_new(arena), .forced = forced, .auto_type = &bf16_dtype};
    tensor_set_add_view(model->tensors, name, view_literal(arena, &f32_dtype, rank, shape, zeros));
    return model;
}

static void check_types(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const expected[] = {rows[i].f32, rows[i].f16, rows[i].bf16, rows[i].q8_0, rows[i].tq1_0};
        struct arena *arena = arena_new();
        struct gguf_model *model = one_tensor(arena, rows[i].name, rows[i].rank, rows[i].shape);
        for (size_t j = 0; j < sizeof outtypes / sizeof *outtypes; j++) {
            struct gguf_plan plan = {0};
            struct error error;
            CHECK(gguf_plan_converter(model, outtypes[j], &plan, &error));
            CHECK_TEXT(plan.places[0].encoding.dtype->name, expected[j]);
            gguf_plan_free(&plan);
        }
        arena_free(arena);
    }
}

static void check_auto(void)
{
    struct arena *arena = arena_new();
    const uint64_t shape[] = {4, 256};
    struct gguf_model *model = one_tensor(arena, "blk.0.ffn_up.weight", 2, shape);
    struct gguf_plan plan = {0};
    struct error error;
    CHECK(gguf_plan_converter(model, "auto", &plan, &error) && plan.places[0].encoding.dtype == &bf16_dtype);
    gguf_plan_free(&plan);
    model->auto_type = &f16_dtype;
    CHECK(gguf_plan_converter(model, "auto", &plan, &error) && plan.places[0].encoding.dtype == &f16_dtype);
    gguf_plan_free(&plan);
    CHECK(!gguf_plan_converter(model, "q4_0", &plan, &error));
    CHECK_TEXT(error.message, "the converter has no output type 'q4_0'");
    arena_free(arena);
}

/* The bytes of gguf-py 0.19's GGUFWriter for: general.architecture "x", general.file_type 1, and tensors "a" F32 [3]
 * and "b" F32 [1, 2]; after writer.add_tensor() of both, write_header_to_file() and write_kv_data_to_file() and
 * write_ti_data_to_file(). */
static const unsigned char expected_head[] = "GGUF\3\0\0\0\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
                                             "\24\0\0\0\0\0\0\0general.architecture\10\0\0\0\1\0\0\0\0\0\0\0x"
                                             "\21\0\0\0\0\0\0\0general.file_type\4\0\0\0\1\0\0\0";
static const unsigned char expected_infos[] =
    "\1\0\0\0\0\0\0\0a\1\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    "\1\0\0\0\0\0\0\0b\2\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\40\0\0\0\0\0\0\0";

static void check_layout(bool trim_ones)
{
    static const float values[] = {1, 2, 3};
    struct arena *arena = arena_new();
    const uint64_t shape_a[] = {3}, shape_b[] = {1, 2};
    struct gguf_model model = {.arena = arena, .tensors = tensor_set_new(arena)};
    tensor_set_add_view(model.tensors, "a", view_literal(arena, &f32_dtype, 1, shape_a, values));
    tensor_set_add_view(model.tensors, "b", view_literal(arena, &f32_dtype, 2, shape_b, values));
    gguf_set_text(&model.kvs, "general.architecture", "x");
    gguf_set_u32(&model.kvs, "general.file_type", 1);
    struct gguf_plan plan = {.kvs = gguf_kvs_copy(&model.kvs),
                             .places = calloc(2, sizeof *plan.places),
                             .n_tensors = 2,
                             .trim_ones = trim_ones};
    plan.places[0] = (struct gguf_place){&model.tensors->tensors[0], encoding_of(&f32_dtype), 0};
    plan.places[1] = (struct gguf_place){&model.tensors->tensors[1], encoding_of(&f32_dtype), 0};
    struct gguf_layout layout;
    struct buffer header = laid_out(&plan, &layout);

    size_t head = sizeof expected_head - 1, infos = sizeof expected_infos - 1;
    CHECK(header.length >= head && memcmp(header.bytes, expected_head, head) == 0);
    CHECK(layout.data % 32 == 0 && layout.size == layout.data + 64);
    CHECK(plan.places[1].offset == 32);
    if (!trim_ones)
        CHECK(header.length >= head + infos && memcmp(header.bytes + head, expected_infos, infos) == 0);
    else
        CHECK(header.bytes[head + 33 + 9] == 1); /* the rank of "b" */
    buffer_free(&header);
    gguf_plan_free(&plan);
    gguf_kvs_free(&model.kvs);
    arena_free(arena);
}

int main(void)
{
    check_types();
    check_auto();
    check_layout(false);
    check_layout(true);
    return check_done();
}
