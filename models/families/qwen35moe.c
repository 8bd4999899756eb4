/* Qwen 3.5, 3.6 and 3.8 with experts. conversion/qwen.py. */
#include "models/families/qwen35.h"

const struct family qwen35moe_family = {
    .name = "qwen35moe",
    .summary = "Qwen 3.5, 3.6 and 3.8 MoE",
    .hf = FAMILY_NAMES({"Qwen3_5MoeForConditionalGeneration"}, {"Qwen3_5MoeForCausalLM"}),
    .tensors = {gated_delta_grouped_tensors, gated_delta_tensors, nextn_tensors, qwen_moe_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", NULL,
                           CONFIG_TABLES(silu_rows, num_experts_rows, qwen35_config_rows), QWEN_HALF_NOTE}),
    .keys = {base_keys, moe_keys, gated_delta_keys, qwen35_keys},
    .vocabs = {&bpe_vocab},
    .add_dimensions = gated_delta_add_dimensions,
    .adjust = gated_delta_count_predicting,
    .rename = nextn_rename,
};
