/* Seed-OSS. conversion/seed_oss.py. */
#include "models/families/family.h"

static const struct family_name names[] = {{"SeedOssForCausalLM"}, {0}};

static const struct relation_row tensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {0},
};

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'silu'"},
    {"attention_bias", FROM_TENSOR, "blk.0.attn_q.bias"},
    {"attention_out_bias", FROM_TENSOR, "blk.0.attn_output.bias"},
    {"mlp_bias", FROM_TENSOR, "blk.0.ffn_up.bias"},
    {0},
};

static const struct config_form forms[] = {{"SeedOssForCausalLM", "seed_oss", NULL, config_rows}, {0}};

const struct family seed_oss_family = {
    .name = "seed_oss",
    .summary = "Seed-OSS",
    .hf = names,
    .tensors = {tensors, decoder_tensors},
    .forms = forms,
    .keys = {base_keys},
    .vocabs = {&bpe_vocab},
};
