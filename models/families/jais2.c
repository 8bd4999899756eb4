/* Jais 2. conversion/jais.py. */
#include "models/families/shared.h"

const struct family jais2_family = {
    .name = "jais2",
    .summary = "Jais 2",
    .hf = FAMILY_NAMES({"Jais2ForCausalLM"}),
    .tensors = {decoder_tensors},
    .keys = {base_keys, KEYS({"rope.dimension_count", GGUF_U32, .compute = compute_head_dim})},
    .vocabs = {&bpe_vocab},
};
