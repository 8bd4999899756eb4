/* Qwen3-VL and Qwen3-Omni with experts: the text half. conversion/qwen3vl.py. */
#include "models/families/qwen3vl.h"

static const struct family_name names[] = {
    {"Qwen3VLMoeForConditionalGeneration"}, {"Qwen3OmniMoeForConditionalGeneration"}, {0}};

/* Experts are stored in one piece, transposed; they come back as those of Qwen 3. */
static const struct relation_row tensors[] = {
    {"model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight", "e f c -> e c f", "f",
     .forward_only = true},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_exps.weight, blk.{}.ffn_up_exps.weight",
     "e c (gate + up) -> e gate c, e up c", "gate up", .forward_only = true},
    {0},
};

const struct family qwen3vlmoe_family = {
    .name = "qwen3vlmoe",
    .summary = "Qwen3-VL, Qwen3-Omni with experts: the text half",
    .hf = names,
    .tensors = {tensors, qwen3_tensors, qwen_moe_tensors, decoder_tensors},
    .forms = qwen3moe_half_forms,
    .keys = {base_keys, moe_keys, qwen3vl_keys},
    .vocabs = {&bpe_vocab},
    .dropped_parts = qwen3vl_dropped_parts,
    .after_vocab = qwen3vl_after_vocab,
};
