/* SmolLM 3. conversion/llama.py's tensors and keys under another name. */
#include "models/families/llama.h"

static const struct family_name names[] = {{"SmolLM3ForCausalLM"}, {0}};

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'silu'"},
    {"attention_bias", FROM_TENSOR, "blk.0.attn_q.bias"},
    {"mlp_bias", FROM_TENSOR, "blk.0.ffn_up.bias"},
    {0},
};

static const struct config_form forms[] = {
    {"SmolLM3ForCausalLM", "smollm3", NULL, config_rows},
    {0},
};

const struct family smollm3_family = {
    .name = "smollm3",
    .summary = "SmolLM 3",
    .hf = names,
    .tensors = {llama_tensors, decoder_tensors},
    .forms = forms,
    .keys = {base_keys, llama_keys},
    .vocabs = {&spm_vocab, &llama_hf_vocab, &bpe_vocab},
    .add_extras = add_rope_freqs,
    .before_vocab = llama_before_vocab,
    .after_vocab = llama_after_vocab,
};
