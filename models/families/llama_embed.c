/* Llama that looks both ways and embeds (llama-embed-nemotron). conversion/llama.py. */
#include "models/families/llama.h"

static const struct family_name names[] = {{"LlamaBidirectionalModel", "model."}, {0}};

const struct family llama_embed_family = {
    .name = "llama-embed",
    .summary = "Llama that embeds: llama-embed-nemotron",
    .hf = names,
    .tensors = {llama_tensors, sparse_moe_tensors, decoder_tensors},
    .keys = {base_keys, llama_keys},
    .vocabs = {&spm_vocab, &llama_hf_vocab, &bpe_vocab},
    .add_extras = add_rope_freqs,
    .before_vocab = llama_before_vocab,
    .after_vocab = llama_after_vocab,
};
