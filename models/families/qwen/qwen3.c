/* Qwen 3, dense. conversion/qwen.py. */
#include "models/families/qwen/qwen.h"
#include "models/families/qwen/qwen3_reranker.h"

const struct config_form qwen3_half_forms[] = {
    {"Qwen3ForCausalLM", "qwen3", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows), HALF_NOTE},
    {0},
};

const struct family qwen3_family = {
    .name = "qwen3",
    .summary = "Qwen 3",
    .hf = FAMILY_NAMES({"Qwen3ForCausalLM"}, {"Qwen3Model", "model."}, {"StepVLForConditionalGeneration"}),
    .tensors = {qk_norm_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Qwen3ForCausalLM", "qwen3", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows)}),
    .keys = {base_keys, KEYS({.emit = emit_pooling_type}, {.emit = emit_reranker})},
    .vocabs = {&spm_vocab, &bpe_vocab},
    .adjust = reranker_look,
    .arrange = reranker_arrange,
};
