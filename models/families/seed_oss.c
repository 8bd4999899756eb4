/* Seed-OSS. conversion/seed_oss.py. */
#include "models/families/shared.h"

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'silu'"},
    {"attention_bias", FROM_TENSOR, "blk.0.attn_q.bias"},
    {"attention_out_bias", FROM_TENSOR, "blk.0.attn_output.bias"},
    {"mlp_bias", FROM_TENSOR, "blk.0.ffn_up.bias"},
    {0},
};

const struct family seed_oss_family = {
    .name = "seed_oss",
    .summary = "Seed-OSS",
    .hf = FAMILY_NAMES({"SeedOssForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"}), decoder_tensors},
    .forms = CONFIG_FORMS({"SeedOssForCausalLM", "seed_oss", NULL, config_rows}),
    .keys = {base_keys},
    .vocabs = {&bpe_vocab},
};
