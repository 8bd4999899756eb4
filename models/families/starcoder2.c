/* StarCoder 2. conversion/starcoder.py. */
#include "models/families/shared.h"

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'gelu_pytorch_tanh'"},
    {"use_bias", FROM_TENSOR, "blk.0.attn_q.bias"},
    {"sliding_window", FROM_TEXT, .text = "null"},
    {0},
};

const struct family starcoder2_family = {
    .name = "starcoder2",
    .summary = "StarCoder 2",
    .hf = FAMILY_NAMES({"Starcoder2ForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.mlp.c_fc", "blk.{}.ffn_up", .parallel = "row"},
                        {"model.layers.{}.mlp.c_proj", "blk.{}.ffn_down", .parallel = "column"}),
                decoder_tensors},
    .forms = CONFIG_FORMS({"Starcoder2ForCausalLM", "starcoder2", NULL, CONFIG_TABLES(config_rows)}),
    .keys = {base_keys},
    .vocabs = {&bpe_vocab},
};
