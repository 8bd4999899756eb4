/* Qwen 3.5, 3.6 and 3.8, dense and with experts; MiniCPM-V 4.6's language model. conversion/qwen.py, minicpm.py. */
#include "models/families/linear_attention.h"
#include "models/families/qwen/qwen.h"

#include <string.h>

/* Counts the layers that predict. The model without its head has none, whatever config.json says; MiniCPM-V's are left
 * out, but counted if config.json has their number. */
static bool adjust(struct model_builder *builder, struct error *error)
{
    bool is_inner = strcmp(builder->hf->name, "Qwen3_5TextModel") == 0;
    if (builder->hf->without_mtp)
        dimensions_set(&builder->dimensions, "without_mtp", 1);
    if (!is_inner)
        return gated_delta_count_predicting(builder, error);
    nextn_set(&builder->dimensions, 0);
    return true;
}

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    return dimensions_get(dimensions, "without_mtp") != 0 ? name : nextn_rename(arena, dimensions, direction, name);
}

static const struct config_row config_rows[] = {
    {"linear_value_head_dim", FROM_QUOTIENT, "ssm.inner_size", "ssm.time_step_rank"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length"},
    {0},
};

const struct family qwen35_family = {
    .name = "qwen35",
    .summary = "Qwen 3.5, 3.6 and 3.8, dense",
    .hf = FAMILY_NAMES({"Qwen3_5ForConditionalGeneration"}, {"Qwen3_5ForCausalLM"},
                       {"Qwen3_5TextModel", .since = 11549, .without_mtp = true},
                       {"MiniCPMV4_6ForConditionalGeneration", .without_mtp = true}),
    .tensors = {TENSORS({"mtp*", NULL, .when = "without_mtp"}, {"model.merger.*", NULL}), gated_delta_grouped_tensors,
                gated_delta_tensors, plus_one_tensors, nextn_tensors, qwen_moe_tensors, decoder_tensors},
    .forms =
        CONFIG_FORMS({"Qwen3_5ForCausalLM", "qwen3_5_text", NULL, CONFIG_TABLES(silu_rows, config_rows), HALF_NOTE}),
    .keys = {base_keys, moe_keys, gated_delta_keys,
             KEYS({.emit = gated_delta_emit_sections},
                  {.emit = emit_pooling_type, .since = POOLING_OF_EMBEDDING_CONFIG})},
    .exports_mtp = true,
    .vocabs = {&bpe_vocab},
    .add_dimensions = gated_delta_add_dimensions,
    .adjust = adjust,
    .rename = rename_tensor,
};

const struct family qwen35moe_family = {
    .name = "qwen35moe",
    .summary = "Qwen 3.5, 3.6 and 3.8 MoE",
    .hf = FAMILY_NAMES({"Qwen3_5MoeForConditionalGeneration"}, {"Qwen3_5MoeForCausalLM"}),
    .tensors = {gated_delta_grouped_tensors, gated_delta_tensors, plus_one_tensors, nextn_tensors, qwen_moe_tensors,
                decoder_tensors},
    .forms = CONFIG_FORMS({"Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", NULL,
                           CONFIG_TABLES(silu_rows, num_experts_rows, config_rows), HALF_NOTE}),
    .keys = {base_keys, moe_keys, gated_delta_keys, KEYS({.emit = gated_delta_emit_sections})},
    .exports_mtp = true,
    .vocabs = {&bpe_vocab},
    .add_dimensions = gated_delta_add_dimensions,
    .adjust = gated_delta_count_predicting,
    .rename = nextn_rename,
};
