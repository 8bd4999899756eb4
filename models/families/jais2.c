/* Jais 2. conversion/jais.py. */
#include "models/families/family.h"

static const struct family_name names[] = {{"Jais2ForCausalLM"}, {0}};

static const struct key_row keys[] = {{"rope.dimension_count", GGUF_U32, .compute = compute_head_dim}, {0}};

const struct family jais2_family = {
    .name = "jais2",
    .summary = "Jais 2",
    .hf = names,
    .tensors = {decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
};
