/* Qwen 3 with experts. conversion/qwen.py. */
#include "formats/gguf/arch/qwen.h"

static const struct arch_name names[] = {{"Qwen3MoeForCausalLM"}, {0}};

const struct arch qwen3moe_arch = {
    .name = "qwen3moe",
    .summary = "Qwen 3 with experts",
    .hf = names,
    .tensors = {qwen3_tensors, qwen_moe_tensors, decoder_tensors},
    .keys = {base_keys, moe_keys},
    .vocabs = {&bpe_vocab},
};
