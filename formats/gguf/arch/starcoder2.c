/* StarCoder 2. conversion/starcoder.py. */
#include "formats/gguf/arch/arch.h"

static const struct arch_name names[] = {{"Starcoder2ForCausalLM"}, {0}};

static const struct tensor_row tensors[] = {
    {"model.layers.{}.mlp.c_fc", "blk.{}.ffn_up"},
    {"model.layers.{}.mlp.c_proj", "blk.{}.ffn_down"},
    {0},
};

const struct arch starcoder2_arch = {
    .name = "starcoder2",
    .summary = "StarCoder 2",
    .hf = names,
    .tensors = {tensors, decoder_tensors},
    .keys = {base_keys},
    .vocabs = {&bpe_vocab},
};
