/* Falcon. conversion/falcon.py. */
#include "models/families/family.h"

static const struct family_name names[] = {{"FalconForCausalLM"}, {"RWForCausalLM"}, {0}};

static const struct tensor_row tensors[] = {
    {"transformer.word_embeddings", "token_embd"},
    {"transformer.ln_f", "output_norm"},
    {"lm_head", "output"},
    {"transformer.h.{}.input_layernorm", "blk.{}.attn_norm"}, /* 7B */
    {"transformer.h.{}.ln_mlp", "blk.{}.attn_norm"},          /* 40B */
    {"transformer.h.{}.ln_attn", "blk.{}.attn_norm_2"},
    {"transformer.h.{}.self_attention.query_key_value", "blk.{}.attn_qkv", QKV_OF_GROUPS},
    {"transformer.h.{}.self_attention.dense", "blk.{}.attn_output"},
    {"transformer.h.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up"},
    {"transformer.h.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down"},
    {0},
};

static const struct key_row keys[] = {
    {"context_length", GGUF_U32, ALWAYS, .value = 2048}, /* config.json does not say it */
    {"tensor_data_layout", GGUF_STRING, ALWAYS, .text = "jploski"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "hidden_size", .times = 4},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads|n_head"},
    {"attention.head_count_kv", GGUF_U32, OR_DEFAULT, "num_kv_heads|n_head_kv", 1},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    FILE_TYPE_KEY,
    {0},
};

const struct family falcon_family = {
    .name = "falcon",
    .summary = "Falcon",
    .hf = names,
    .tensors = {tensors},
    .keys = {keys},
    .vocabs = {&bpe_vocab},
};
