/* DBRX. conversion/dbrx.py. Its router is of the output's type, as all matrices are. */
#include "models/families/shared.h"

#define BLOCK "transformer.blocks.{}."

static const struct relation_row tensors[] = {
    {"transformer.norm_f", "output_norm"},
    {BLOCK "norm_attn_norm.norm_1", "blk.{}.attn_norm"},
    {BLOCK "norm_attn_norm.attn.Wqkv", "blk.{}.attn_qkv", "(head d + kv_head k + kv_head v) ...", "head kv_head"},
    {BLOCK "norm_attn_norm.attn.out_proj", "blk.{}.attn_output", .parallel = "column"},
    {BLOCK "norm_attn_norm.norm_2", "blk.{}.attn_output_norm"},
    {BLOCK "ffn.router.layer", "blk.{}.ffn_gate_inp"},
    {BLOCK "ffn.experts.mlp.w1", "blk.{}.ffn_gate_exps.weight", "(expert f) c -> expert f c", "f"},
    {BLOCK "ffn.experts.mlp.v1", "blk.{}.ffn_up_exps.weight", "(expert f) c -> expert f c", "f"},
    {BLOCK "ffn.experts.mlp.w2", "blk.{}.ffn_down_exps.weight", "(expert f) c -> expert c f", "f"},
    {0},
};

static const struct key_row keys[] = {
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"context_length", GGUF_U32, REQUIRED, "max_seq_len"},
    {"embedding_length", GGUF_U32, REQUIRED, "d_model"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "ffn_config.ffn_hidden_size"},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_heads"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "attn_config.kv_n_heads"},
    {"rope.freq_base", GGUF_F32, REQUIRED, "attn_config.rope_theta"},
    {"attention.clamp_kqv", GGUF_F32, REQUIRED, "attn_config.clip_qkv"},
    {"expert_count", GGUF_U32, REQUIRED, "ffn_config.moe_num_experts"},
    {"expert_used_count", GGUF_U32, REQUIRED, "ffn_config.moe_top_k"},
    {"attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-5},
    FILE_TYPE_KEY,
    {0},
};

static const struct config_row config_rows[] = {
    {"attn_config", FROM_TEXT,
     .text = "{\n    'clip_qkv': <attention.clamp_kqv>,\n    'kv_n_heads': <attention.head_count_kv>,"
             "\n    'rope_theta': <rope.freq_base>\n  }"},
    {"ffn_config", FROM_TEXT,
     .text = "{\n    'ffn_hidden_size': <feed_forward_length>,\n    'moe_num_experts': <expert_count>,"
             "\n    'moe_top_k': <expert_used_count>\n  }"},
    {0},
};

const struct family dbrx_family = {
    .name = "dbrx",
    .summary = "DBRX",
    .hf = FAMILY_NAMES({"DbrxForCausalLM"}),
    .tensors = {tensors, gpt_tensors},
    .forms = CONFIG_FORMS({"DbrxForCausalLM", "dbrx", NULL, CONFIG_TABLES(config_rows)}),
    .keys = {keys},
    .vocabs = {&bpe_vocab},
    .matrices_alike = true,
    .dimensions = {DIMENSIONS({"kv_head", "attn_config.kv_n_heads", .kept = true},
                              {"expert", "ffn_config.moe_num_experts", .kept = true})},
};
