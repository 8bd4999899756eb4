/* Bloom. conversion/bloom.py. */
#include "models/families/shared.h"

static const struct relation_row tensors[] = {
    {"^word_embeddings", "token_embd", .parallel = "row"},
    {"^word_embeddings_layernorm", "token_embd_norm"},
    {"^ln_f", "output_norm"},
    {"lm_head", "output", .parallel = "row"},
    {"^h.{}.input_layernorm", "blk.{}.attn_norm"},
    {"^h.{}.self_attention.query_key_value", "blk.{}.attn_qkv", "(head part d) ... -> (part head d) ...", "head"},
    {"^h.{}.self_attention.dense", "blk.{}.attn_output", .parallel = "column"},
    {"^h.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {"^h.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up", .parallel = "row"},
    {"^h.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down", .parallel = "column"},
    {0},
};

static const struct key_row keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "seq_length|hidden_size|n_embed"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size|n_embed"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "hidden_size|n_embed", .times = 4},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_head|num_attention_heads"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "n_head|num_attention_heads"},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    FILE_TYPE_KEY,
    {0},
};

static const struct config_row config_rows[] = {
    {"n_head", FROM_KEY, "attention.head_count"},
    {"seq_length", FROM_KEY, "context_length"},
    {"apply_residual_connection_post_layernorm", FROM_TEXT, .text = "false"},
    {0},
};

const struct family bloom_family = {
    .name = "bloom",
    .summary = "Bloom",
    .hf = FAMILY_NAMES({"BloomForCausalLM"}, {"BloomModel"}),
    .tensors = {tensors},
    .forms = CONFIG_FORMS({"BloomForCausalLM", "bloom", NULL, CONFIG_TABLES(config_rows)}),
    .keys = {keys},
    .vocabs = {&bpe_vocab},
    .prefix = "transformer.",
    .dropped_parts = TEXTS("transformer."),
};
