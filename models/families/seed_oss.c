/* Seed-OSS. conversion/seed_oss.py. */
#include "models/families/family.h"

static const struct family_name names[] = {{"SeedOssForCausalLM"}, {0}};

static const struct relation_row tensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {0},
};

const struct family seed_oss_family = {
    .name = "seed_oss",
    .summary = "Seed-OSS",
    .hf = names,
    .tensors = {tensors, decoder_tensors},
    .keys = {base_keys},
    .vocabs = {&bpe_vocab},
};
