/* OLMo 1. conversion/olmo.py. */
#include "models/families/shared.h"

const struct family olmo_family = {
    .name = "olmo",
    .summary = "OLMo 1",
    .hf = FAMILY_NAMES({"OlmoForCausalLM"}, {"OLMoForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight", QUERY_ROTARY, "head"},
                        {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight", KEY_ROTARY, "kv_head"}),
                decoder_tensors},
    .forms = CONFIG_FORMS({"OlmoForCausalLM", "olmo", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows,
                                         CONFIG_ROWS({"clip_qkv", FROM_KEY, "attention.clamp_kqv", .text = "null"}))}),
    .keys = {base_keys, KEYS({"attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-5},
                             {"attention.clamp_kqv", GGUF_F32, IF_PRESENT, "clip_qkv"})},
    .vocabs = {&bpe_vocab},
};
