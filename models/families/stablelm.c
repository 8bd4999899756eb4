/* StableLM. conversion/stablelm.py, except the norms of single heads (StableLM 2 12B), which the converter fails to
 * stack: wfs stacks them, as llama.cpp's loader expects. */
#include "models/families/shared.h"

static const struct key_row keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "max_position_embeddings"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_head},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "num_key_value_heads"},
    {"use_parallel_residual", GGUF_BOOL, OR_DEFAULT, "use_parallel_residual", 1},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_eps|norm_eps"},
    FILE_TYPE_KEY,
    {.emit = note_lost_rope},
    {0},
};

static const struct config_row config_rows[] = {
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count"},
    {"use_qkv_bias", FROM_TENSOR, "blk.0.attn_q.bias"},
    {"qk_layernorm", FROM_TENSOR, "blk.0.attn_q_norm.weight"},
    {"rope_theta", FROM_TEXT, .text = "10000"},
    {0},
};

const struct family stablelm_family = {
    .name = "stablelm",
    .summary = "StableLM",
    .hf = FAMILY_NAMES({"StableLmForCausalLM"}, {"StableLMEpochForCausalLM"}, {"LlavaStableLMEpochForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.self_attn.q_layernorm.norms.{head}", "blk.{}.attn_q_norm"},
                        {"model.layers.{}.self_attn.k_layernorm.norms.{kv_head}", "blk.{}.attn_k_norm"}),
                decoder_tensors},
    .forms = CONFIG_FORMS({"StableLmForCausalLM", "stablelm", NULL, CONFIG_TABLES(silu_rows, config_rows)}),
    .keys = {keys},
    .vocabs = {&bpe_vocab},
};
