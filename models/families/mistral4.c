/* Mistral Small 4: DeepSeek's layout, its experts in one piece. conversion/mistral3.py. */
#include "models/families/deepseek.h"

static const struct family_name names[] = {{"Mistral3ForConditionalGeneration"}, {"Ministral3ForCausalLM"}, {0}};

static const struct relation_row tensors[] = {
    {"lm_head.weight", NULL, .when = "tie_word_embeddings"},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_up_exps.weight", "expert (gate + up) c", "gate up"},
    {"model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight", .parallel = "column"},
    {0},
};

static bool applies(const struct hparams *hparams)
{
    return json_string_is(hparams_get(hparams, "model_type"), "mistral4");
}

const struct family mistral4_family = {
    .name = "mistral4",
    .summary = "Mistral Small 4",
    .hf = names,
    .tensors = {tensors, mla_tensors, deepseek_moe_tensors, decoder_tensors},
    .keys = {base_keys, mla_keys},
    .vocabs = {&bpe_vocab},
    .applies = applies,
    .add_facts = mla_add_facts,
    .adjust = mla_adjust,
};
