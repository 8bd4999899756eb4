/* The language models Qwen 1, 2 and 3, dense and with experts. conversion/qwen.py. */
#include "models/families/qwen/qwen.h"

/* Qwen 1. config.json's width is that of both halves of a feed-forward network together, and the converter writes it
 * unchanged. */
#define LAYER "transformer.h.{}."

const struct family qwen_family = {
    .name = "qwen",
    .summary = "Qwen 1",
    .hf = FAMILY_NAMES({"QWenLMHeadModel"}),
    .tensors = {TENSORS({LAYER "attn.c_attn", "blk.{}.attn_qkv", "(part head d) ...", "head"},
                        {LAYER "mlp.w1", "blk.{}.ffn_up", .parallel = "row"},
                        {LAYER "mlp.w2", "blk.{}.ffn_gate", .parallel = "row"}),
                gpt_tensors},
    .keys = {base_keys},
    .vocabs = {&qwen_vocab},
};

/* Korean Open Reasoning Model's names of the norms */
static const struct relation_row qwen2_tensors[] = {
    {"model.layers.{}.pre_attention_layernorm", "blk.{}.attn_norm", .forward_only = true},
    {"model.layers.{}.pre_mlp_layernorm", "blk.{}.ffn_norm", .forward_only = true},
    {0},
};

static const struct config_row qwen2_config_rows[] = {
    {"use_sliding_window", FROM_TEXT, .text = "false"},
    {0},
};

const struct config_form qwen2_half_forms[] = {
    {"Qwen2ForCausalLM", "qwen2", NULL, CONFIG_TABLES(silu_rows, qwen2_config_rows), HALF_NOTE},
    {0},
};

const struct family qwen2_family = {
    .name = "qwen2",
    .summary = "Qwen 1.5, 2 and 2.5",
    .hf = FAMILY_NAMES({"Qwen2ForCausalLM"}, {"Qwen2Model", "model."}, {"Qwen2AudioForConditionalGeneration"},
                       {"AudioFlamingo3ForConditionalGeneration"}, {"DotsOCRForCausalLM"}, {"KORMoForCausalLM"}),
    .tensors = {qwen2_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Qwen2ForCausalLM", "qwen2", NULL, CONFIG_TABLES(silu_rows, qwen2_config_rows)}),
    .keys = {base_keys, KEYS({.emit = emit_pooling_type})},
    .vocabs = {&spm_vocab, &bpe_vocab},
};

const struct relation_row qwen_moe_tensors[] = {
    {"model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.mlp.experts.{expert}.down_proj", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"model.layers.{}.mlp.experts.{expert}.gate_proj", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {"model.layers.{}.mlp.experts.{expert}.up_proj", "blk.{}.ffn_up_exps", .parallel = "row"},
    /* as newer releases of transformers store them */
    {"model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight", .parallel = "column",
     .forward_only = true},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_exps.weight, blk.{}.ffn_up_exps.weight", GATE_UP,
     "gate up", .forward_only = true},
    {"model.layers.{}.mlp.shared_expert_gate", "blk.{}.ffn_gate_inp_shexp", "one c"},
    {"model.layers.{}.mlp.shared_expert.down_proj", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {"model.layers.{}.mlp.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp", .parallel = "row"},
    {"model.layers.{}.mlp.shared_expert.up_proj", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {0},
};

static const struct config_row qwen2moe_config_rows[] = {
    {"decoder_sparse_step", FROM_TEXT, .text = "1"},
    {"mlp_only_layers", FROM_TEXT, .text = "[]"},
    {"norm_topk_prob", FROM_TEXT, .text = "false"},
    {0},
};

const struct family qwen2moe_family = {
    .name = "qwen2moe",
    .summary = "Qwen 1.5 and 2 MoE",
    .hf = FAMILY_NAMES({"Qwen2MoeForCausalLM"}),
    .tensors = {qwen_moe_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Qwen2MoeForCausalLM", "qwen2_moe", NULL, CONFIG_TABLES(silu_rows, qwen2moe_config_rows)}),
    .keys = {base_keys, moe_keys},
    .vocabs = {&bpe_vocab},
};

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

static const struct config_row qwen3moe_config_rows[] = {
    {"decoder_sparse_step", FROM_TEXT, .text = "1"},
    {"mlp_only_layers", FROM_TEXT, .text = "[]"},
    {"norm_topk_prob", FROM_TEXT, .text = "true"},
    {0},
};

const struct config_form qwen3moe_half_forms[] = {
    {"Qwen3MoeForCausalLM", "qwen3_moe", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, qwen3moe_config_rows),
     HALF_NOTE},
    {0},
};

const struct family qwen3moe_family = {
    .name = "qwen3moe",
    .summary = "Qwen 3 MoE",
    .hf = FAMILY_NAMES({"Qwen3MoeForCausalLM"}),
    .tensors = {qk_norm_tensors, qwen_moe_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Qwen3MoeForCausalLM", "qwen3_moe", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, qwen3moe_config_rows)}),
    .keys = {base_keys, moe_keys},
    .vocabs = {&bpe_vocab},
};
