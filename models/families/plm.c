/* PLM: latent attention, and a feed-forward network without a gate. conversion/plm.py. */
#include "models/families/shared.h"

static const struct key_row keys[] = {
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"attention.kv_lora_rank", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"attention.key_length", GGUF_U32, REQUIRED, "qk_nope_head_dim", .plus = "qk_rope_head_dim"},
    {"attention.value_length", GGUF_U32, REQUIRED, "v_head_dim"},
    {"rope.dimension_count", GGUF_U32, REQUIRED, "qk_rope_head_dim"},
    {0},
};

const struct family plm_family = {
    .name = "plm",
    .summary = "PLM",
    .hf = FAMILY_NAMES({"PLMForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.self_attn.kv_a_proj_with_mqa", "blk.{}.attn_kv_a_mqa"},
                        {"model.layers.{}.self_attn.kv_a_layernorm", "blk.{}.attn_kv_a_norm"},
                        {"model.layers.{}.self_attn.kv_b_proj", "blk.{}.attn_kv_b", "(head (k + v)) ...", "head"}),
                decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
};
