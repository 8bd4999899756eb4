/* Qwen 1.5, 2 and 2.5. conversion/qwen.py. */
#include "models/families/family.h"

static const struct family_name names[] = {{"Qwen2ForCausalLM"}, {"Qwen2Model", "model."}, {0}};

static const struct key_row keys[] = {{.emit = emit_pooling_type}, {0}};

const struct family qwen2_family = {
    .name = "qwen2",
    .summary = "Qwen 1.5, 2 and 2.5",
    .hf = names,
    .tensors = {decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
};
