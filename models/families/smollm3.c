/* SmolLM 3. conversion/llama.py's tensors and keys under another name. */
#include "models/families/llama.h"

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'silu'"},
    {"attention_bias", FROM_TENSOR, "blk.0.attn_q.bias"},
    {"mlp_bias", FROM_TENSOR, "blk.0.ffn_up.bias"},
    {0},
};

const struct family smollm3_family = {
    .name = "smollm3",
    .summary = "SmolLM 3",
    .hf = FAMILY_NAMES({"SmolLM3ForCausalLM"}),
    .tensors = {llama_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"SmolLM3ForCausalLM", "smollm3", NULL, config_rows}),
    .keys = {base_keys, llama_keys},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
};
