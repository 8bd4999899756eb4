/* Which type a tensor has in each of the converter's outputs, and where it lies. Rules: prepare_tensors() in
 * conversion/base.py.
 */
#include "models/convert/model.h"
#include "models/family/family.h"
#include "quant/views/convert.h"
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
    struct gguf_model *model = arena_alloc(arena, sizeof *model);
    *model = (struct gguf_model){.arena = arena, .tensors = tensor_set_new(arena), .auto_type = &bf16_dtype};
    tensor_set_add_view(model->tensors, name, view_numbers(arena, rank, shape, zeros));
    return model;
}

static void check_types(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const expected[] = {rows[i].f32, rows[i].f16, rows[i].bf16, rows[i].q8_0, rows[i].tq1_0};
        struct arena *arena = arena_new();
        struct gguf_model *model = one_tensor(arena, rows[i].name, rows[i].rank, rows[i].shape);
        for (size_t j = 0; j < sizeof outtypes / sizeof *outtypes; j++) {
            struct artifact artifact = {0};
            struct error error;
            CHECK(converter_artifact(&(struct gguf_edition){.model = model}, outtypes[j], &artifact, &error));
            CHECK_TEXT(artifact.tensors[0].encoding.dtype->name, expected[j]);
            artifact_free(&artifact);
        }
        arena_free(arena);
    }
}

/* The type that a tensor has in every output, or "-"; of a model of a family with these rows, and of a plain one. */
static const struct {
    const char *name, *dtype;
    unsigned rank;
    const char *expected, *expected_plain;
} stored[] = {
    {"blk.3.kernel.weight", "F16", 2, "F32", "-"},
    {"blk.3.kernel.weight", "F16", 1, "-", "-"},
    {"blk.3.table.weight", "I32", 2, "I32", "I32"},
    {"d2t", "I64", 1, "I64", "I64"},
    {"a.weight", "BF16", 2, "BF16", "-"},
    {"a.weight", "F16", 2, "-", "-"},
    {"a.weight", "F64", 2, "-", "F64"},
    {"a.weight", "I64", 2, "-", "I64"},
    {"a.weight", "Q8_0", 2, "Q8_0", "Q8_0"},
    {"blk.3.kernel.weight", "MXFP4", 2, "MXFP4", "MXFP4"},
};

static void check_stored(void)
{
    static const struct stored_type types[] = {{"blk.{}.kernel.weight", &f32_dtype},
                                               {"blk.{}.table.weight", &i32_dtype},
                                               {"d2t", &i64_dtype},
                                               {"*", &bf16_dtype, &bf16_dtype},
                                               {0}};
    static const struct family family = {.name = "test", .stored_types = types};
    static const uint64_t shape[] = {2, 32};
    static const double zeros[64];
    struct arena *arena = arena_new();
    for (size_t i = 0; i < sizeof stored / sizeof *stored; i++)
        for (int plain = 0; plain < 2; plain++) {
            struct gguf_model model = {.arena = arena, .tensors = tensor_set_new(arena)};
            model.family = plain ? NULL : &family;
            model.stored_types = plain ? NULL : types;
            tensor_set_add_view(
                model.tensors, stored[i].name,
                view_literal(arena, dtype_by_name(stored[i].dtype), stored[i].rank, shape + 2 - stored[i].rank, zeros));
            const struct dtype *type = gguf_stored_type(&model, &model.tensors->tensors[0]);
            CHECK_TEXT(type != NULL ? type->name : "-", plain ? stored[i].expected_plain : stored[i].expected);
        }
    arena_free(arena);
}

static void check_auto(void)
{
    struct arena *arena = arena_new();
    const uint64_t shape[] = {4, 256};
    struct gguf_model *model = one_tensor(arena, "blk.0.ffn_up.weight", 2, shape);
    struct artifact artifact = {0};
    struct error error;
    CHECK(converter_artifact(&(struct gguf_edition){.model = model}, "auto", &artifact, &error) &&
          artifact.tensors[0].encoding.dtype == &bf16_dtype);
    artifact_free(&artifact);
    model->auto_type = &f16_dtype;
    CHECK(converter_artifact(&(struct gguf_edition){.model = model}, "auto", &artifact, &error) &&
          artifact.tensors[0].encoding.dtype == &f16_dtype);
    artifact_free(&artifact);
    CHECK(!converter_artifact(&(struct gguf_edition){.model = model}, "q4_0", &artifact, &error));
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
    tensor_set_add_view(model.tensors, "a", view_numbers(arena, 1, shape_a, values));
    tensor_set_add_view(model.tensors, "b", view_numbers(arena, 2, shape_b, values));
    gguf_set_text(&model.kvs, "general.architecture", "x");
    gguf_set_u32(&model.kvs, "general.file_type", 1);
    struct artifact artifact = {.container = trim_ones ? &ggml_container : &gguf_container,
                                .metadata = gguf_kvs_copy(&model.kvs)};
    artifact_reserve(&artifact, 2);
    artifact.tensors[0] = (struct artifact_tensor){&model.tensors->tensors[0], encoding_of(&f32_dtype)};
    artifact.tensors[1] = (struct artifact_tensor){&model.tensors->tensors[1], encoding_of(&f32_dtype)};
    struct buffer header = laid_out(&artifact);

    size_t head = sizeof expected_head - 1, infos = sizeof expected_infos - 1;
    CHECK(header.length >= head && memcmp(header.bytes, expected_head, head) == 0);
    CHECK(header.length % 32 == 0 && memcmp(header.bytes + header.length - 64, "\0\0\x80\x3f\0\0\0\x40", 8) == 0);
    if (!trim_ones)
        CHECK(header.length >= head + infos && memcmp(header.bytes + head, expected_infos, infos) == 0);
    else
        CHECK(header.bytes[head + 33 + 9] == 1); /* the rank of "b" */
    buffer_free(&header);
    artifact_free(&artifact);
    gguf_kvs_free(&model.kvs);
    arena_free(arena);
}

int main(void)
{
    check_types();
    check_stored();
    check_auto();
    check_layout(false);
    check_layout(true);
    return check_done();
}
