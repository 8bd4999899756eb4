/* SmolLM 3. conversion/llama.py's tensors and keys under another name. */
#include "models/families/llama.h"

static const struct family_name names[] = {{"SmolLM3ForCausalLM"}, {0}};

const struct family smollm3_family = {
    .name = "smollm3",
    .summary = "SmolLM 3",
    .hf = names,
    .tensors = {llama_tensors, decoder_tensors},
    .keys = {base_keys, llama_keys},
    .vocabs = {&spm_vocab, &llama_hf_vocab, &bpe_vocab},
    .add_extras = add_rope_freqs,
    .before_vocab = llama_before_vocab,
    .after_vocab = llama_after_vocab,
};
