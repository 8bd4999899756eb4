/* Arcee AFM. conversion/llama.py. */
#include "models/families/llama.h"

static const struct family_name names[] = {{"ArceeForCausalLM"}, {0}};

static const struct key_row keys[] = {{.emit = emit_pooling_type}, {0}};

const struct family arcee_family = {
    .name = "arcee",
    .summary = "Arcee AFM",
    .hf = names,
    .tensors = {llama_tensors, decoder_tensors},
    .keys = {base_keys, llama_keys, keys},
    .vocabs = {&spm_vocab, &llama_hf_vocab, &bpe_vocab},
    .add_extras = add_rope_freqs,
    .before_vocab = llama_before_vocab,
    .after_vocab = llama_after_vocab,
};
