/* The MiniMax families. conversion/minimax.py. */
#include "formats/documents.h"
#include "models/families/qwen/qwen.h"
#include "models/families/shared.h"
#include "quant/views/convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* MiniMax Text-01 and M1: linear attention in most layers. conversion/minimax.py.
 *
 * All-zero rows of the embedding beyond the tokenizer's own tokens are tokens that the model must not generate: making
 * the header reads these rows. */

enum { MOST_ROWS = 1 << 12, MOST_COLUMNS = 1 << 16 }; /* to read; real models have some hundred surplus rows */

static const struct relation_row minimax_01_tensors[] = {
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
    .tensors = {minimax_01_tensors, sparse_moe_tensors, decoder_tensors},
    .keys = {base_keys, KEYS({.emit = emit_suppressed}, {"residual_scale", GGUF_F32, .compute = compute_residual_scale},
                             {"rope.dimension_count", GGUF_U32, REQUIRED, "rotary_dim"})},
    .vocabs = {&bpe_vocab},
    .after_vocab = note_template,
};

/* MiniMax M2; and M3: M2 with norms stored minus one, a shared expert, dense layers and sparse attention.
 * conversion/minimax.py. */

static const struct relation_row correction_tensors[] = {
    {"model.layers.{}.block_sparse_moe.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {0},
};

/* Reports whether the keys are those of transformers' class for M3's text model. */
static bool is_of_transformers(const struct hparams *hparams)
{
    return hparams_get(hparams, "index_n_heads") != NULL && hparams_get(hparams, "sparse_attention_config") == NULL;
}

/* Releases of transformers 5 save the share instead of rotary_dim, without which the converter fails. A share beside
 * rotary_dim is what transformers computes with. */
static bool compute_rotary(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    double share, by_share = NAN;
    if (is_of_transformers(hparams)) /* which goes by the share */
        return rotary_of_head_dim(builder, 1, ret_value, error);
    bool has_share = json_double(hparams_rope(hparams, "partial_rotary_factor"), &share);
    if (has_share && !rotary_of_head_dim(builder, NAN, &by_share, error))
        return false;
    if (hparams_get(hparams, "rotary_dim") != NULL && !builder_number(builder, "rotary_dim", NAN, ret_value, error))
        return false;
    if (hparams_get(hparams, "rotary_dim") == NULL) {
        if (!has_share)
            return error_set(error, "config.json: rotary_dim and partial_rotary_factor are missing");
        *ret_value = by_share;
        checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                        "config.json has partial_rotary_factor %g in rope_parameters instead of rotary_dim; the "
                        "converter refuses it, wfs writes rope.dimension_count %g",
                        share, by_share);
    } else if (has_share && by_share != *ret_value) {
        checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                        "config.json has rotary_dim %g, which the converter writes, but transformers 5 computes with "
                        "partial_rotary_factor %g: -o override-kv=%s.rope.dimension_count=int:%g",
                        *ret_value, share, family_architecture(builder->family), by_share);
    }
    return true;
}

static const struct key_row common_keys[] = {
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary},
    {0},
};

static const struct config_row config2_rows[] = {
    {"use_qk_norm", FROM_TENSOR, "blk.0.attn_q_norm.weight"},
    {"use_routing_bias", FROM_TEXT, .text = "true"},
    {"scoring_func", FROM_TEXT, .text = "'sigmoid'"},
    {0},
};

const struct family minimax_m2_family = {
    .name = "minimax-m2",
    .summary = "MiniMax M2",
    .hf = FAMILY_NAMES({"MiniMaxM2ForCausalLM"}),
    .tensors = {correction_tensors, qk_norm_tensors, sparse_moe_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"MiniMaxM2ForCausalLM", "minimax_m2", NULL, CONFIG_TABLES(silu_rows, config2_rows)}),
    .keys = {base_keys, common_keys},
    .vocabs = {&bpe_vocab},
};

/* The last is transformers' class for the text model alone, which the converter does not know. */
static const struct family_name names[] = {
    {"MiniMaxM3SparseForCausalLM"}, {"MiniMaxM3SparseForConditionalGeneration"}, {"MiniMaxM3VLForCausalLM"}, {0}};

#define EXPERTS "model.layers.{}.mlp.experts."
#define SHARED  "model.layers.{}.mlp.shared_experts."
#define INDEXER "model.layers.{}.self_attn.indexer."

/* Names of that class, which differ from the released ones. */
static const struct relation_row text_tensors[] = {
    {"model.layers.{}.mlp.gate_up_proj.weight", "blk.{}.ffn_gate.weight, blk.{}.ffn_up.weight", GATE_UP, "gate up"},
    {EXPERTS "gate_up_proj", "blk.{}.ffn_gate_exps.weight, blk.{}.ffn_up_exps.weight", GATE_UP, "gate up"},
    {EXPERTS "down_proj", "blk.{}.ffn_down_exps.weight", .parallel = "column"},
    {SHARED "gate_up_proj.weight", "blk.{}.ffn_gate_shexp.weight, blk.{}.ffn_up_shexp.weight", GATE_UP, "gate up"},
    {SHARED "down_proj", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {"model.layers.{}.mlp.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.mlp.gate.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {INDEXER "q_proj", "blk.{}.indexer.q_proj"},
    {INDEXER "k_proj", "blk.{}.indexer.k_proj"},
    {INDEXER "q_norm", "blk.{}.indexer.q_norm", .map = &plus_one},
    {INDEXER "k_norm", "blk.{}.indexer.k_norm", .map = &plus_one},
    {0},
};

static const struct relation_row minimax_m2_tensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm", .map = &plus_one},
    {"model.layers.{}.self_attn.index_q_proj", "blk.{}.indexer.q_proj"},
    {"model.layers.{}.self_attn.index_k_proj", "blk.{}.indexer.k_proj"},
    {"model.layers.{}.self_attn.index_q_norm", "blk.{}.indexer.q_norm", .map = &plus_one},
    {"model.layers.{}.self_attn.index_k_norm", "blk.{}.indexer.k_norm", .map = &plus_one},
    {"model.layers.{}.block_sparse_moe.shared_experts.gate_proj", "blk.{}.ffn_gate_shexp", .parallel = "row"},
    {"model.layers.{}.block_sparse_moe.shared_experts.up_proj", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {"model.layers.{}.block_sparse_moe.shared_experts.down_proj", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {0},
};

/* Counts the zeros at the beginning of moe_layer_freq, or the dense layers of transformers' mlp_layer_types. */
static bool compute_dense_layers(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct json *item = json_first(hparams_get(builder->model->hparams, "moe_layer_freq"));
    const struct json *type = item == NULL ? json_first(hparams_get(builder->model->hparams, "mlp_layer_types")) : NULL;
    uint64_t frequency;
    *ret_value = 0;
    for (; item != NULL && json_u64(item, &frequency) && frequency == 0; item = json_next(item))
        *ret_value += 1;
    for (; type != NULL && json_string_is(type, "dense"); type = json_next(type))
        *ret_value += 1;
    return true;
}

/* transformers' class has no keys for the function, a sigmoid, and for the shared expert. */
static bool emit_constants(struct model_builder *builder, struct error *error)
{
    enum { SIGMOID = 2 };
    const struct hparams *hparams = builder->model->hparams;
    const char *key = builder_key(builder, "expert_gating_func");
    if (!is_of_transformers(hparams))
        return true;
    if (gguf_kvs_find(&builder->model->kvs, key) == NULL)
        gguf_set_u32(&builder->model->kvs, key, SIGMOID);
    if (hparams_get(hparams, "n_shared_experts") == NULL)
        gguf_set_u32(&builder->model->kvs, builder_key(builder, "expert_shared_count"), 1);
    return true;
}

static const struct key_row keys[] = {
    {.emit = emit_constants},
    {"expert_shared_count", GGUF_U32, IF_PRESENT, "n_shared_experts"},
    {"expert_weights_scale", GGUF_F32, IF_PRESENT, "routed_scaling_factor"},
    {"expert_weights_norm", GGUF_BOOL, ALWAYS, .value = 1},
    {"attention.indexer.head_count", GGUF_U32, REQUIRED,
     "sparse_attention_config.sparse_num_index_heads|index_n_heads"},
    {"attention.indexer.key_length", GGUF_U32, REQUIRED, "sparse_attention_config.sparse_index_dim|index_head_dim"},
    {"attention.indexer.top_k", GGUF_U32, REQUIRED, "sparse_attention_config.sparse_topk_blocks|index_topk_blocks"},
    {"attention.indexer.block_size", GGUF_U32, REQUIRED, "sparse_attention_config.sparse_block_size|index_block_size"},
    {"attention.indexer.local_blocks", GGUF_U32, REQUIRED,
     "sparse_attention_config.sparse_local_block|index_local_blocks"},
    {"leading_dense_block_count", GGUF_U32, .compute = compute_dense_layers},
    {0},
};

static const struct config_row config_rows[] = {
    {"dense_intermediate_size", FROM_KEY, "feed_forward_length"},
    {"shared_intermediate_size", FROM_KEY, "expert_feed_forward_length"},
    {"scoring_func", .make = config_gating_function, .text = "'sigmoid'"},
    {"moe_layer_freq", FROM_LAYERS, "blk.{}.ffn_gate_inp.weight", "1|0"},
    {"layer_types", FROM_LAYERS, "blk.{}.indexer.q_proj.weight", "'minimax_m3_sparse'|'full_attention'"},
    {"sparse_attention_config", FROM_TEXT,
     .text = "{\n    'sparse_block_size': <attention.indexer.block_size>,"
             "\n    'sparse_index_dim': <attention.indexer.key_length>,"
             "\n    'sparse_local_block': <attention.indexer.local_blocks>,"
             "\n    'sparse_num_index_heads': <attention.indexer.head_count>,"
             "\n    'sparse_topk_blocks': <attention.indexer.top_k>\n  }"},
    {0},
};

const struct family minimax_m3_family = {
    .name = "minimax-m3",
    .summary = "MiniMax M3",
    .hf = names,
    .tensors = {text_tensors, minimax_m2_tensors, plus_one_tensors, correction_tensors, sparse_moe_tensors,
                decoder_tensors},
    .forms = CONFIG_FORMS(
        {"MiniMaxM3VLForCausalLM", "minimax_m3_vl_text", NULL, CONFIG_TABLES(silu_rows, config_rows), HALF_NOTE}),
    .keys = {base_keys, common_keys, keys},
    .vocabs = {&bpe_vocab},
    .stored_types =
        STORED_TYPES({"blk.{}.indexer.q_proj.weight", &f32_dtype}, {"blk.{}.indexer.k_proj.weight", &f32_dtype}),
};
