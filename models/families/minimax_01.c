/* MiniMax Text-01 and M1: linear attention in most layers. conversion/minimax.py.
 *
 * All-zero rows of the embedding beyond the tokenizer's own tokens are tokens that the model must not generate: making
 * the header reads these rows. */
#include "formats/documents.h"
#include "models/families/shared.h"
#include "quant/views/convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_ROWS = 1 << 12, MOST_COLUMNS = 1 << 16 }; /* to read; real models have some hundred surplus rows */

static const struct relation_row tensors[] = {
    {"model.layers.{}.self_attn.qkv_proj", "blk.{}.attn_qkv", .parallel = "row"}, /* head by head */
    {"model.layers.{}.self_attn.out_proj", "blk.{}.attn_output", .when = "has:blk.{}.attn_qkv", .parallel = "column"},
    {"model.layers.{}.self_attn.output_gate", "blk.{}.attn_gate", .parallel = "row"},
    {"model.layers.{}.self_attn.norm", "blk.{}.attn_norm_2"},
    {0},
};

/* Counts the tokens of tokenizer.json without the added ones; UINT64_MAX without that file. */
static bool count_tokens(const struct model_builder *builder, uint64_t *ret_count, struct error *error)
{
    struct document *tokenizer;
    if (!document_open(builder->model->checkpoint, "tokenizer.json", &tokenizer, error))
        return false;
    const struct json *vocab = json_get(json_get(document_root(tokenizer), "model"), "vocab");
    *ret_count = tokenizer != NULL ? json_count(vocab) + json_count_members(vocab) : UINT64_MAX;
    document_close(tokenizer);
    return true;
}

static bool is_zero(const float *row, uint64_t n_columns)
{
    for (uint64_t i = 0; i < n_columns; i++)
        if (row[i] != 0)
            return false;
    return true;
}

/* Appends the numbers, from `first` on, of all-zero rows. */
static bool find_zeros(struct arena *arena, const struct view *embedding, uint64_t first, struct buffer *elements,
                       struct error *error)
{
    uint64_t n_columns = embedding->shape[1];
    float *row = memory_alloc(n_columns * sizeof *row);
    bool is_read = true;
    for (uint64_t i = first; is_read && i < embedding->shape[0]; i++) {
        const struct view *view = view_slice(arena, embedding, 0, i, 1, 1);
        is_read = convert_values(view, 0, n_columns, row, error);
        if (is_read && is_zero(row, n_columns))
            buffer_append_le(elements, (uint32_t)i, 4);
    }
    free(row);
    return is_read;
}

static bool emit_suppressed(struct model_builder *builder, struct error *error)
{
    struct buffer elements = {0};
    uint64_t first;
    const struct tensor *tensor =
        tensor_set_find_text(builder->model->checkpoint->tensors, "model.embed_tokens.weight");
    if (!count_tokens(builder, &first, error))
        return false;
    if (tensor == NULL || tensor->rank != 2 || first >= tensor->shape[0])
        return true;
    if (tensor->shape[0] - first > MOST_ROWS || tensor->shape[1] > MOST_COLUMNS || tensor->shape[0] > INT32_MAX)
        return error_set(error,
                         "tokenizer.json has %" PRIu64 " tokens, and the embedding %" PRIu64 " rows of %" PRIu64
                         " columns: too many to search for zero rows (at most %d rows, %d columns)",
                         first, tensor->shape[0], tensor->shape[1], MOST_ROWS, MOST_COLUMNS);
    struct arena *arena = builder->model->arena;
    if (!find_zeros(arena, tensor_view(tensor, arena), first, &elements, error)) {
        buffer_free(&elements);
        return false;
    }
    if (elements.length > 0)
        gguf_set_array(&builder->model->kvs, "tokenizer.ggml.suppress_tokens", GGUF_I32, elements.length / 4,
                       &elements);
    return true;
}

/* Computes the one factor for all residuals that llama.cpp supports. */
static bool compute_residual_scale(const struct model_builder *builder, double *ret_value, struct error *error)
{
    static const char *const kinds[] = {"full_attention", "linear_attention", "mlp"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        double alpha, beta;
        if (!builder_number(builder, arena_printf(builder->model->arena, "layernorm_%s_alpha", kinds[i]), NAN, &alpha,
                            error) ||
            !builder_number(builder, arena_printf(builder->model->arena, "layernorm_%s_beta", kinds[i]), NAN, &beta,
                            error))
            return false;
        if (i > 0 && !(alpha == *ret_value))
            return error_set(error, "config.json: layernorm_%s_alpha is %g, but full_attention has %g", kinds[i], alpha,
                             *ret_value);
        if (!(beta == 1))
            return error_set(error, "config.json: layernorm_%s_beta is not 1", kinds[i]);
        *ret_value = alpha;
    }
    return true;
}

static bool note_template(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    if (checkpoint_side_file(input->checkpoint, "chat_template.jinja") == NULL)
        checkpoint_note(
            input->checkpoint, SUBJECT_GGUF,
            "no chat template: chat_template.jinja is missing, and wfs does not have the converter's template for this "
            "model; -o chat-template=FILE adds a template");
    return true;
}

const struct family minimax_01_family = {
    .name = "minimax-01",
    .summary = "MiniMax Text-01 and M1",
    .hf = FAMILY_NAMES({"MiniMaxText01ForCausalLM"}, {"MiniMaxM1ForCausalLM"}),
    .tensors = {tensors, sparse_moe_tensors, decoder_tensors},
    .keys = {base_keys, KEYS({.emit = emit_suppressed}, {"residual_scale", GGUF_F32, .compute = compute_residual_scale},
                             {"rope.dimension_count", GGUF_U32, REQUIRED, "rotary_dim"})},
    .vocabs = {&bpe_vocab},
    .after_vocab = note_template,
};
