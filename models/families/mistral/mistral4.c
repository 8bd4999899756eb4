/* Mistral Small 4: DeepSeek's architecture, with stacked experts. conversion/mistral3.py. */
#include "models/families/deepseek/deepseek.h"

/* The last is transformers' class for the text model alone, which the converter does not know. */
static const struct family_name names[] = {
    {"Mistral3ForConditionalGeneration"}, {"Ministral3ForCausalLM"}, {"Mistral4ForCausalLM"}, {0}};

static bool applies(const struct hparams *hparams)
{
    return json_string_is(hparams_get(hparams, "model_type"), "mistral4");
}

/* No key has the growth of attention with the position; all published models have the same. */
static const struct config_row config_rows[] = {
    {"head_dim", FROM_KEY, "attention.key_length_mla"},
    {"moe_intermediate_size", FROM_KEY, "expert_feed_forward_length"},
    {"rope_scaling.llama_4_scaling_beta", FROM_TEXT, .text = "0.1"},
    {"rope_scaling.partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length_mla"},
    {0},
};

const struct family mistral4_family = {
    .name = "mistral4",
    .summary = "Mistral Small 4",
    .hf = names,
    .tensors = {TENSORS({"lm_head.weight", NULL, .when = "tie_word_embeddings"},
                        {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_up_exps.weight",
                         "expert (gate + up) c", "gate up"},
                        {"model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight", .parallel = "column"}),
                mla_tensors, router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Mistral4ForCausalLM", "mistral4", NULL,
                           CONFIG_TABLES(silu_rows, deepseek_config_rows, config_rows), HALF_NOTE}),
    .keys = {mla_first_keys, base_keys, mla_keys},
    .vocabs = {&bpe_vocab},
    .applies = applies,
    .dimensions = {mla_dimensions},
    .defaults = MLA_DEFAULTS,
};
