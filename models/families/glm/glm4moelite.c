/* GLM-4.7-Flash: DeepSeek's architecture with GLM's tokenizer and a layer that predicts ahead. conversion/glm.py. */
#include "models/families/deepseek/deepseek.h"
#include "models/families/drafts/nextn.h"

static const struct config_row config_rows[] = {
    {"mlp_layer_types", FROM_LAYERS, "blk.{}.ffn_gate_inp.weight", "'sparse'|'dense'"},
    {"moe_intermediate_size", FROM_KEY, "expert_feed_forward_length"},
    {0},
};

const struct family glm4moelite_family = {
    .name = "glm4moelite",
    .architecture = "deepseek2",
    .summary = "GLM-4.7-Flash",
    .hf = FAMILY_NAMES({"Glm4MoeLiteForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.*", NULL, .when = "extra_layer"},
                        {"lm_head.weight", NULL, .when = "tie_word_embeddings"}),
                mla_tensors, router_tensors, expert_tensors, nextn_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"Glm4MoeLiteForCausalLM", "glm4_moe_lite", NULL, CONFIG_TABLES(silu_rows, deepseek_config_rows, config_rows)}),
    .told_by = "key:nextn_predict_layers",
    .keys = {base_keys, mla_keys, KEYS({.emit = nextn_emit})},
    .exports_mtp = true,
    .vocabs = {&glm_vocab},
    .dimensions = {mla_dimensions},
    .add_dimensions = nextn_add_dimensions,
    .defaults = MLA_DEFAULTS,
    .adjust = nextn_count_blocks,
};
