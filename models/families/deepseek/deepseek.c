/* DeepSeek MoE 16B, the first generation. conversion/deepseek.py. */
#include "models/families/llama/llama.h"

static const struct key_row keys[] = {
    {"rope.dimension_count", GGUF_U32, .compute = compute_head_dim},
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"},
    {"leading_dense_block_count", GGUF_U32, REQUIRED, "first_k_dense_replace"},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"expert_weights_scale", GGUF_F32, ALWAYS, .value = 1},
    {"expert_count", GGUF_U32, REQUIRED, "n_routed_experts"},
    {"expert_shared_count", GGUF_U32, REQUIRED, "n_shared_experts"},
    {0},
};

const struct family deepseek_family = {
    .name = "deepseek",
    .summary = "DeepSeek MoE 16B",
    .hf = FAMILY_NAMES({"DeepseekForCausalLM"}),
    .tensors = {expert_tensors, router_tensors, llama_tensors, decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
};
