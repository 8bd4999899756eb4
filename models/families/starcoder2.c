/* StarCoder 2. conversion/starcoder.py. */
#include "models/families/family.h"

static const struct family_name names[] = {{"Starcoder2ForCausalLM"}, {0}};

static const struct relation_row tensors[] = {
    {"model.layers.{}.mlp.c_fc", "blk.{}.ffn_up"},
    {"model.layers.{}.mlp.c_proj", "blk.{}.ffn_down"},
    {0},
};

const struct family starcoder2_family = {
    .name = "starcoder2",
    .summary = "StarCoder 2",
    .hf = names,
    .tensors = {tensors, decoder_tensors},
    .keys = {base_keys},
    .vocabs = {&bpe_vocab},
};
