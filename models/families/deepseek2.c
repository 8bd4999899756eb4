/* DeepSeek V2 and V3: multi-head latent attention, shared experts. conversion/deepseek.py. */
#include "models/families/deepseek.h"

#include <string.h>

static const struct family_name names[] = {{"DeepseekV2ForCausalLM"},
                                           {"DeepseekV3ForCausalLM"},
                                           {"KimiVLForConditionalGeneration"},
                                           {"KimiK25ForConditionalGeneration"},
                                           {"YoutuForCausalLM"},
                                           {"YoutuVLForConditionalGeneration"},
                                           {0}};

static const struct relation_row tensors[] = {
    {"model.layers.{}.*", NULL, .when = "extra_layer"}, /* they predict more than one token */
    {"lm_head.weight", NULL, .when = "tie_word_embeddings"},
    {0},
};

static const struct config_row config_v3_rows[] = {
    DEEPSEEK_CONFIG_ROWS,
    {"topk_method", FROM_TEXT, .text = "'noaux_tc'"},
    {"scoring_func", FROM_TEXT, .text = "'sigmoid'"},
    {0},
};

static const struct config_row config_v2_rows[] = {
    DEEPSEEK_CONFIG_ROWS, {"topk_method", FROM_TEXT, .text = "'greedy'"}, {0}};

static const struct config_form forms[] = {
    {"DeepseekV3ForCausalLM", "deepseek_v3", "key:expert_gating_func=2", config_v3_rows}, /* sigmoid */
    {"DeepseekV2ForCausalLM", "deepseek_v2", NULL, config_v2_rows},
    {0},
};

static bool applies(const struct hparams *hparams)
{
    return !deepseek_is_ocr(hparams);
}

const struct family deepseek2_family = {
    .name = "deepseek2",
    .summary = "DeepSeek V2 and V3",
    .hf = names,
    .tensors = {tensors, mla_tensors, deepseek_moe_tensors, deepseek_expert_tensors, decoder_tensors},
    .forms = forms,
    .keys = {base_keys, mla_keys},
    .vocabs = {&bpe_vocab, &kimi_vocab},
    .applies = applies,
    .add_facts = mla_add_facts,
    .adjust = mla_adjust,
};
