/* MiniMax M2; and M3: M2 with norms stored minus one, a shared expert, dense layers and sparse attention.
 * conversion/minimax.py. */
#include "models/families/qwen/qwen.h"

#include <math.h>

static const struct relation_row correction_tensors[] = {
    {"model.layers.{}.block_sparse_moe.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {0},
};

/* Releases of transformers 5 save the share instead of rotary_dim, without which the converter fails. A share beside
 * rotary_dim is what transformers computes with. */
static bool compute_rotary(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    double share, by_share = NAN;
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

static const struct relation_row tensors[] = {
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

/* Counts the zeros at the beginning of moe_layer_freq. */
static bool compute_dense_layers(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct json *item = json_first(hparams_get(builder->model->hparams, "moe_layer_freq"));
    uint64_t frequency;
    *ret_value = 0;
    for (; item != NULL && json_u64(item, &frequency) && frequency == 0; item = json_next(item))
        *ret_value += 1;
    return true;
}

static const struct key_row keys[] = {
    {"expert_shared_count", GGUF_U32, IF_PRESENT, "n_shared_experts"},
    {"expert_weights_scale", GGUF_F32, IF_PRESENT, "routed_scaling_factor"},
    {"expert_weights_norm", GGUF_BOOL, ALWAYS, .value = 1},
    {"attention.indexer.head_count", GGUF_U32, REQUIRED, "sparse_attention_config.sparse_num_index_heads"},
    {"attention.indexer.key_length", GGUF_U32, REQUIRED, "sparse_attention_config.sparse_index_dim"},
    {"attention.indexer.top_k", GGUF_U32, REQUIRED, "sparse_attention_config.sparse_topk_blocks"},
    {"attention.indexer.block_size", GGUF_U32, REQUIRED, "sparse_attention_config.sparse_block_size"},
    {"attention.indexer.local_blocks", GGUF_U32, REQUIRED, "sparse_attention_config.sparse_local_block"},
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
    .tensors = {text_tensors, tensors, plus_one_tensors, correction_tensors, sparse_moe_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"MiniMaxM3VLForCausalLM", "minimax_m3_vl_text", NULL, CONFIG_TABLES(silu_rows, config_rows), HALF_NOTE}),
    .keys = {base_keys, common_keys, keys},
    .vocabs = {&bpe_vocab},
    .stored_types =
        STORED_TYPES({"blk.{}.indexer.q_proj.weight", &f32_dtype}, {"blk.{}.indexer.k_proj.weight", &f32_dtype}),
};
