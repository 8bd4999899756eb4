/* GLM-4.5 to 4.7, the language models of GLM-4.5V and 4.6V, GLM-4.7-Flash, and Solar Open. conversion/glm.py. */
#include "models/families/deepseek/deepseek.h"
#include "models/families/drafts/nextn.h"
#include "models/families/qwen/qwen.h"

static const struct relation_row tensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {0},
};

static const struct key_row keys[] = {
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_half},
    {"expert_count", GGUF_U32, IF_PRESENT, "n_routed_experts"},
    {"expert_feed_forward_length", GGUF_U32, IF_PRESENT, "moe_intermediate_size"},
    {"expert_shared_count", GGUF_U32, IF_PRESENT, "n_shared_experts"},
    {"leading_dense_block_count", GGUF_U32, IF_PRESENT, "first_k_dense_replace"},
    {"expert_gating_func", GGUF_U32, ALWAYS, .value = 2}, /* sigmoid */
    {"expert_weights_scale", GGUF_F32, IF_PRESENT, "routed_scaling_factor"},
    {"expert_weights_norm", GGUF_BOOL, IF_PRESENT, "norm_topk_prob"},
    {.emit = nextn_emit_stated},
    {0},
};

static const struct config_row config_rows[] = {
    {"use_qk_norm", FROM_TENSOR, "blk.0.attn_q_norm.weight"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length"},
    {0},
};

/* Solar Open is GLM without biases and dense layers. */
static const struct config_form forms[] = {
    {"SolarOpenForCausalLM", "solar_open",
     "!tensor:blk.0.attn_q.bias !tensor:blk.0.attn_q_norm.weight !tensor:blk.0.ffn_gate.weight",
     CONFIG_TABLES(silu_rows, attention_bias_rows, config_rows)},
    {"Glm4MoeForCausalLM", "glm4_moe", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, config_rows)},
    {0},
};

const struct family glm4moe_family = {
    .name = "glm4moe",
    .summary = "GLM-4.5 to 4.7 MoE",
    .hf = FAMILY_NAMES({"Glm4MoeForCausalLM"}, {"Glm4vMoeForConditionalGeneration"}),
    .tensors = {tensors, qk_norm_tensors, router_tensors, expert_tensors, nextn_tensors, decoder_tensors},
    .forms = forms,
    .keys = {base_keys, keys},
    .exports_mtp = true,
    .mtp_since = MTP_OF_GLM45,
    .vocabs = {&glm_vocab},
    .add_dimensions = nextn_add_dimensions,
    .adjust = nextn_count_blocks,
};

const struct family solar_open_family = {
    .name = "solar-open",
    .architecture = "glm4moe",
    .summary = "Solar Open",
    .hf = FAMILY_NAMES({"SolarOpenForCausalLM"}),
    .tensors = {tensors, qk_norm_tensors, router_tensors, expert_tensors, nextn_tensors, decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&solar_vocab},
    .add_dimensions = nextn_add_dimensions,
    .adjust = nextn_count_blocks,
};

/* GLM-4.7-Flash: DeepSeek's architecture with GLM's tokenizer and a layer that predicts ahead. */
static const struct config_row glm4moelite_config_rows[] = {
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
    .forms = CONFIG_FORMS({"Glm4MoeLiteForCausalLM", "glm4_moe_lite", NULL,
                           CONFIG_TABLES(silu_rows, deepseek_config_rows, glm4moelite_config_rows)}),
    .told_by = "key:nextn_predict_layers",
    .keys = {mla_first_keys, base_keys, mla_keys, KEYS({.emit = nextn_emit})},
    .exports_mtp = true,
    .vocabs = {&glm_vocab},
    .dimensions = {mla_dimensions},
    .add_dimensions = nextn_add_dimensions,
    .defaults = MLA_DEFAULTS,
    .adjust = nextn_count_blocks,
};
