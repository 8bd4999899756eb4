/* Phi 3.5 with experts. conversion/phi.py, PhiMoeModel. */
#include "models/families/phi/phi3.h"

/* No key has the rope's factor: this is the only released model's. */
static const struct config_row common_rows[] = {
    {"lm_head_bias", FROM_TENSOR, "output.bias"},
    {"rope_scaling.short_mscale", FROM_TEXT, .text = "1.243163121016122"},
    {"rope_scaling.long_mscale", FROM_TEXT, .text = "1.243163121016122"},
    {"rope_scaling.original_max_position_embeddings", FROM_KEY, "rope.scaling.original_context_length"},
    {0},
};

const struct family phimoe_family = {
    .name = "phimoe",
    .summary = "Phi 3.5 MoE",
    .hf = FAMILY_NAMES({"PhiMoEForCausalLM"}, {"PhimoeForCausalLM"}),
    .tensors = {sparse_moe_tensors, decoder_tensors},
    .forms =
        CONFIG_FORMS({"PhiMoEForCausalLM", "phimoe", "key:attention.sliding_window=0",
                      CONFIG_TABLES(silu_rows, attention_bias_rows, common_rows, no_window_rows)},
                     {"PhiMoEForCausalLM", "phimoe", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, common_rows)}),
    .keys = {phi3_keys, KEYS({"expert_used_count", GGUF_U32, REQUIRED, "num_experts_per_tok"},
                             {"expert_count", GGUF_U32, REQUIRED, "num_local_experts"})},
    .vocabs = {&phi3_vocab, &hf_phi3_vocab, &bpe_vocab},
    .add_extras = phi3_add_rope_factors,
};
