/* Qwen 3 with experts. conversion/qwen.py. */
#include "models/families/qwen.h"

static const struct family_name names[] = {{"Qwen3MoeForCausalLM"}, {0}};

const struct family qwen3moe_family = {
    .name = "qwen3moe",
    .summary = "Qwen 3 with experts",
    .hf = names,
    .tensors = {qwen3_tensors, qwen_moe_tensors, decoder_tensors},
    .keys = {base_keys, moe_keys},
    .vocabs = {&bpe_vocab},
};
