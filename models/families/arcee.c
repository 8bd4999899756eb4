/* Arcee AFM. conversion/llama.py. */
#include "models/families/llama/llama.h"

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'relu2'"},
    {"head_dim", FROM_KEY, "rope.dimension_count"},
    {0},
};

const struct family arcee_family = {
    .name = "arcee",
    .summary = "Arcee AFM",
    .hf = FAMILY_NAMES({"ArceeForCausalLM"}),
    .tensors = {llama_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"ArceeForCausalLM", "arcee", NULL, CONFIG_TABLES(attention_bias_rows, mlp_bias_rows, config_rows)}),
    .keys = {base_keys, llama_keys, KEYS({.emit = emit_pooling_type})},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
};
