/* An embedding model: Llama with bidirectional attention (llama-embed-nemotron). conversion/llama.py. */
#include "models/families/llama/llama.h"

const struct family llama_embed_family = {
    .name = "llama-embed",
    .summary = "llama-embed-nemotron (embeddings)",
    .hf = FAMILY_NAMES({"LlamaBidirectionalModel", "model."}),
    .tensors = {llama_tensors, sparse_moe_tensors, decoder_tensors},
    .keys = {base_keys, llama_keys},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
};
