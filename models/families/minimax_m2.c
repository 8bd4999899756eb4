/* MiniMax M2. conversion/minimax.py. */
#include "models/families/minimax.h"
#include "models/families/qwen.h"

const struct relation_row minimax_tensors[] = {
    {"model.layers.{}.block_sparse_moe.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {0},
};

const struct key_row minimax_keys[] = {
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"rope.dimension_count", GGUF_U32, REQUIRED, "rotary_dim"},
    {0},
};

static const struct config_row config_rows[] = {
    {"use_qk_norm", FROM_TENSOR, "blk.0.attn_q_norm.weight"},
    {"use_routing_bias", FROM_TEXT, .text = "true"},
    {"scoring_func", FROM_TEXT, .text = "'sigmoid'"},
    {0},
};

const struct family minimax_m2_family = {
    .name = "minimax-m2",
    .summary = "MiniMax M2",
    .hf = FAMILY_NAMES({"MiniMaxM2ForCausalLM"}),
    .tensors = {minimax_tensors, qk_norm_tensors, sparse_moe_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"MiniMaxM2ForCausalLM", "minimax_m2", NULL, CONFIG_TABLES(silu_rows, config_rows)}),
    .keys = {base_keys, minimax_keys},
    .vocabs = {&bpe_vocab},
};
