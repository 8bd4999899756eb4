/* Models with experts in Mistral's own format: Mistral Large 3. They are DeepSeek's under other names; config_classes.c
 * has params.json's. conversion/mistral.py, MistralMoeModel. */
#include "models/families/deepseek/deepseek.h"
#include "models/families/mistral/mistral_format.h"

static const struct relation_row tensors[] = {
    {"output.weight", NULL, .when = "tie_word_embeddings"},
    {"tok_embeddings", "token_embd", .parallel = "row"},
    {"norm", "output_norm"},
    {"output", "output", .parallel = "row"},
    {"layers.{}.attention_norm", "blk.{}.attn_norm"},
    {"layers.{}.attention.wq_a", "blk.{}.attn_q_a"},
    {"layers.{}.attention.q_a_norm", "blk.{}.attn_q_a_norm"},
    {"layers.{}.attention.wq_b", "blk.{}.attn_q_b", "(head d) ...", "head"},
    {"layers.{}.attention.wq", "blk.{}.attn_q", "(head d) ...", "head"},
    {"layers.{}.attention.wkv_a_with_mqa", "blk.{}.attn_kv_a_mqa"},
    {"layers.{}.attention.kv_a_norm", "blk.{}.attn_kv_a_norm"},
    {"layers.{}.attention.wkv_b", "blk.{}.attn_k_b, blk.{}.attn_v_b",
     "(kv_head (nope + value)) c -> kv_head c nope, kv_head value c", "kv_head"},
    {"layers.{}.attention.wo", "blk.{}.attn_output", .parallel = "column"},
    {"layers.{}.ffn_norm", "blk.{}.ffn_norm"},
    {"layers.{}.feed_forward.w1", "blk.{}.ffn_gate", .parallel = "row"},
    {"layers.{}.feed_forward.w2", "blk.{}.ffn_down", .parallel = "column"},
    {"layers.{}.feed_forward.w3", "blk.{}.ffn_up", .parallel = "row"},
    {"layers.{}.gate", "blk.{}.ffn_gate_inp"},
    {"layers.{}.shared_experts.w1", "blk.{}.ffn_gate_shexp", .parallel = "row"},
    {"layers.{}.shared_experts.w2", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {"layers.{}.shared_experts.w3", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {"layers.{}.experts.{expert}.w2", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"layers.{}.experts.{expert}.w1", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {"layers.{}.experts.{expert}.w3", "blk.{}.ffn_up_exps", .parallel = "row"},
    {0},
};

const struct family mistral_moe_family = {
    .name = "mistral-moe",
    .architecture = "deepseek2",
    .summary = "Mistral's own format, MoE",
    .hf = FAMILY_NAMES({"MistralMoeModel"}),
    .tensors = {tensors},
    .keys = {mla_first_keys, base_keys, mla_keys, mistral_format_keys,
             KEYS({"attention.temperature_length", GGUF_U32, REQUIRED, "yarn.original_max_position_embeddings"},
                  {"rope.scaling.yarn_log_multiplier", GGUF_F32, ALWAYS, .value = 0.1})},
    .vocabs = {&tekken_vocab, &mistral_spm_vocab},
    .dimensions = {mla_dimensions},
    .defaults = MLA_DEFAULTS,
};
