/* Arcee AFM. conversion/llama.py. */
#include "models/families/llama.h"

static const struct family_name names[] = {{"ArceeForCausalLM"}, {0}};

static const struct key_row keys[] = {{.emit = emit_pooling_type}, {0}};

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'relu2'"},
    {"head_dim", FROM_KEY, "rope.dimension_count"},
    {"attention_bias", FROM_TENSOR, "blk.0.attn_q.bias"},
    {"mlp_bias", FROM_TENSOR, "blk.0.ffn_up.bias"},
    {0},
};

static const struct config_form forms[] = {
    {"ArceeForCausalLM", "arcee", NULL, config_rows},
    {0},
};

const struct family arcee_family = {
    .name = "arcee",
    .summary = "Arcee AFM",
    .hf = names,
    .tensors = {llama_tensors, decoder_tensors},
    .forms = forms,
    .keys = {base_keys, llama_keys, keys},
    .vocabs = {&spm_vocab, &llama_hf_vocab, &bpe_vocab},
    .add_extras = add_rope_freqs,
    .before_vocab = llama_before_vocab,
    .after_vocab = llama_after_vocab,
};
