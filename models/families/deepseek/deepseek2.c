/* DeepSeek V2 and V3: multi-head latent attention, shared experts. conversion/deepseek.py. */
#include "models/families/deepseek/deepseek.h"

#include <string.h>

static const struct relation_row tensors[] = {
    {"model.layers.{}.*", NULL, .when = "extra_layer"}, /* layers that predict more than one token */
    {"lm_head.weight", NULL, .when = "tie_word_embeddings"},
    {0},
};

static const struct config_row config_v3_rows[] = {
    {"topk_method", FROM_TEXT, .text = "'noaux_tc'"},
    {"scoring_func", FROM_TEXT, .text = "'sigmoid'"},
    {0},
};

static const char *choose_method(const struct config_material *material)
{
    double n_groups;
    bool has_groups = config_number_of_layer(material, "expert_group_count", 0, &n_groups) && n_groups > 1;
    return has_groups ? "\"group_limited_greedy\"" : "\"greedy\"";
}

/* Notes a V3 without scoring_func, as transformers makes a new one: its class always has a sigmoid. */
static bool note_gating(struct model_builder *builder, struct error *error)
{
    const struct gguf_model *model = builder->model;
    uint64_t function;
    (void)error;
    if (strcmp(builder->hf->name, "DeepseekV3ForCausalLM") == 0 &&
        dimensions_get(&builder->dimensions, "expert") != 0 &&
        !gguf_get_u64(&model->kvs, builder_key(builder, "expert_gating_func"), &function))
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "config.json has no scoring_func, so that llama.cpp weighs experts by a softmax, transformers "
                        "by a sigmoid: -o override-kv=%s.expert_gating_func=int:2",
                        family_architecture(builder->family));
    return true;
}

/* V3's router is a sigmoid; older files show that only by V3's bias. */
#define V3_CONDITION "key:expert_gating_func=2|!key:expert_gating_func tensor:blk.{}.exp_probs_b.bias"

const struct family deepseek2_family = {
    .name = "deepseek2",
    .summary = "DeepSeek V2 and V3",
    .hf = FAMILY_NAMES({"DeepseekV2ForCausalLM"}, {"DeepseekV3ForCausalLM"}, {"KimiVLForConditionalGeneration"},
                       {"KimiK25ForConditionalGeneration"}, {"YoutuForCausalLM"}, {"YoutuVLForConditionalGeneration"}),
    .tensors = {tensors, mla_tensors, router_tensors, expert_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"DeepseekV3ForCausalLM", "deepseek_v3", V3_CONDITION,
         CONFIG_TABLES(silu_rows, deepseek_config_rows, config_v3_rows)},
        {"DeepseekV2ForCausalLM", "deepseek_v2", NULL,
         CONFIG_TABLES(silu_rows, deepseek_config_rows, CONFIG_ROWS({"topk_method", .make = choose_method}))}),
    .keys = {mla_first_keys, base_keys, mla_keys, KEYS({.emit = note_gating})},
    .vocabs = {&bpe_vocab, &kimi_vocab},
    .dimensions = {mla_dimensions},
    .defaults = MLA_DEFAULTS,
};
