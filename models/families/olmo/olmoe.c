/* OLMoE. conversion/olmo.py. */
#include "models/families/shared.h"

static const struct config_row config_rows[] = {
    {"norm_topk_prob", FROM_TEXT, .text = "false"},
    {"clip_qkv", FROM_TEXT, .text = "null"},
    {0},
};

const struct family olmoe_family = {
    .name = "olmoe",
    .summary = "OLMoE",
    .hf = FAMILY_NAMES({"OlmoeForCausalLM"}),
    .tensors = {qk_norm_tensors, expert_tensors, router_tensors, decoder_tensors},
    .forms =
        CONFIG_FORMS({"OlmoeForCausalLM", "olmoe", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, config_rows)}),
    .keys = {base_keys, KEYS({"attention.layer_norm_rms_epsilon", GGUF_F32, ALWAYS, .value = 1e-5})},
    .vocabs = {&bpe_vocab},
};
