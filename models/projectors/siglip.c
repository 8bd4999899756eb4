/* SigLIP's names in transformers, shared by many towers, after the prefix of the tower. */
#include "models/projectors/projector.h"

const struct relation_row siglip_tensors[] = {
    {"^embeddings.patch_embedding", "v.patch_embd"},
    {"^embeddings.position_embedding", "v.position_embd"},
    {"^encoder.layers.{}.layer_norm1", "v.blk.{}.ln1"},
    {"^encoder.layers.{}.layer_norm2", "v.blk.{}.ln2"},
    {"^encoder.layers.{}.self_attn.q_proj", "v.blk.{}.attn_q"},
    {"^encoder.layers.{}.self_attn.k_proj", "v.blk.{}.attn_k"},
    {"^encoder.layers.{}.self_attn.v_proj", "v.blk.{}.attn_v"},
    {"^encoder.layers.{}.self_attn.out_proj", "v.blk.{}.attn_out"},
    {"^encoder.layers.{}.mlp.fc1", "v.blk.{}.ffn_up"},
    {"^encoder.layers.{}.mlp.fc2", "v.blk.{}.ffn_down"},
    {"^post_layernorm", "v.post_ln"},
    {0},
};
