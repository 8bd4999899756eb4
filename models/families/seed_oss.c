/* Seed-OSS. conversion/seed_oss.py. */
#include "models/families/shared.h"

const struct family seed_oss_family = {
    .name = "seed_oss",
    .summary = "Seed-OSS",
    .hf = FAMILY_NAMES({"SeedOssForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"}), decoder_tensors},
    .forms = CONFIG_FORMS({"SeedOssForCausalLM", "seed_oss", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, mlp_bias_rows,
                                         CONFIG_ROWS({"attention_out_bias", FROM_TENSOR, "blk.0.attn_output.bias"}))}),
    .keys = {base_keys},
    .vocabs = {&bpe_vocab},
};
