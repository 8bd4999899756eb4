/* Granite 3 with experts. conversion/granite.py. */
#include "models/families/granite/granite.h"
#include "models/families/llama/llama.h"

const struct relation_row granite_moe_tensors[] = {
    {"model.layers.{}.block_sparse_moe.input_linear", "blk.{}.ffn_gate_exps, blk.{}.ffn_up_exps", GATE_UP, "gate up"},
    {"model.layers.{}.block_sparse_moe.output_linear", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"model.layers.{}.block_sparse_moe.router.layer", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.shared_mlp.input_linear", "blk.{}.ffn_gate_shexp, blk.{}.ffn_up_shexp", GATE_UP, "gate up"},
    {"model.layers.{}.shared_mlp.output_linear", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {0},
};

const struct key_row granite_moe_keys[] = {
    {"expert_shared_feed_forward_length", GGUF_U32, IF_TRUE, "shared_intermediate_size"}, {0}};

static const struct config_row config_form_rows[] = {
    {"num_key_value_heads", FROM_MOST, "attention.head_count_kv"},
    {"logits_scaling", FROM_KEY, "logit_scale", .text = "1.0"},
    {0},
};

const struct family granitemoe_family = {
    .name = "granitemoe",
    .summary = "Granite 3 MoE",
    .hf = FAMILY_NAMES({"GraniteMoeForCausalLM"}, {"GraniteMoeSharedForCausalLM"}),
    .tensors = {granite_moe_tensors, llama_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"GraniteMoeSharedForCausalLM", "granitemoeshared", "tensor:blk.0.ffn_gate_shexp.weight",
         CONFIG_TABLES(silu_rows, attention_bias_rows, config_form_rows)},
        {"GraniteMoeForCausalLM", "granitemoe", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, config_form_rows)}),
    .keys = {base_keys, granite_keys, granite_moe_keys},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
    .rename = granite_without_towers,
};
