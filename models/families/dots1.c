/* dots.llm1. conversion/dots1.py. */
#include "models/families/shared.h"

const struct family dots1_family = {
    .name = "dots1",
    .summary = "dots.llm1",
    .hf = FAMILY_NAMES({"Dots1ForCausalLM"}),
    .tensors = {qk_norm_tensors, expert_tensors, router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Dots1ForCausalLM", "dots1", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows)}),
    .keys = {base_keys, moe_keys,
             KEYS({"leading_dense_block_count", GGUF_U32, REQUIRED, "first_k_dense_replace"},
                  {"expert_shared_count", GGUF_U32, REQUIRED, "n_shared_experts"},
                  {"expert_weights_scale", GGUF_F32, REQUIRED, "routed_scaling_factor"},
                  {"expert_weights_norm", GGUF_BOOL, REQUIRED, "norm_topk_prob"})},
    .vocabs = {&bpe_vocab},
};
