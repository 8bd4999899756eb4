/* gpt-oss, conversion/gpt_oss.py. */
#include "models/families/shared.h"

#define EXPERTS "model.layers.{}.mlp.experts."

static const struct relation_row tensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.self_attn.sinks", "blk.{}.attn_sinks.weight", .parallel = "row"},
    {"model.layers.{}.mlp.router", "blk.{}.ffn_gate_inp"},
    {EXPERTS "down_proj_bias", "blk.{}.ffn_down_exps.bias"},
    {EXPERTS "gate_up_proj_bias", "blk.{}.ffn_gate_exps.bias, blk.{}.ffn_up_exps.bias",
     "e (f (even + odd)) -> e (f even), e (f odd)", "f"},
    {EXPERTS "down_proj", "blk.{}.ffn_down_exps.weight", "e f c -> e c f", "f"},
    {EXPERTS "gate_up_proj", "blk.{}.ffn_gate_exps.weight, blk.{}.ffn_up_exps.weight",
     "e c (f (even + odd)) -> e (f even) c, e (f odd) c", "f"},
    {0},
};

static const struct config_row config_rows[] = {
    {"swiglu_limit", FROM_TEXT, .text = "7.0"},
    {"attention_bias", FROM_TEXT, .text = "true"},
    {"rope_scaling.truncate", FROM_TEXT, .text = "false"},
    {0},
};

const struct family gpt_oss_family = {
    .name = "gpt-oss",
    .summary = "gpt-oss",
    .hf = FAMILY_NAMES({"GptOssForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"GptOssForCausalLM", "gpt_oss", NULL, CONFIG_TABLES(silu_rows, config_rows)}),
    .keys = {base_keys, KEYS({"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"},
                             {"expert_feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"})},
    .vocabs = {&bpe_vocab},
};
