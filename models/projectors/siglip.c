/* Names of SigLIP and CLIP as transformers has them, which many towers are. */
#include "models/projectors/projector.h"

const struct relation_row siglip_tensors[] = {
    {"vision_tower.vision_model.embeddings.patch_embedding", "v.patch_embd"},
    {"vision_tower.vision_model.embeddings.position_embedding", "v.position_embd"},
    {"vision_tower.vision_model.encoder.layers.{}.layer_norm1", "v.blk.{}.ln1"},
    {"vision_tower.vision_model.encoder.layers.{}.layer_norm2", "v.blk.{}.ln2"},
    {"vision_tower.vision_model.encoder.layers.{}.self_attn.q_proj", "v.blk.{}.attn_q"},
    {"vision_tower.vision_model.encoder.layers.{}.self_attn.k_proj", "v.blk.{}.attn_k"},
    {"vision_tower.vision_model.encoder.layers.{}.self_attn.v_proj", "v.blk.{}.attn_v"},
    {"vision_tower.vision_model.encoder.layers.{}.self_attn.out_proj", "v.blk.{}.attn_out"},
    {"vision_tower.vision_model.encoder.layers.{}.mlp.fc1", "v.blk.{}.ffn_up"},
    {"vision_tower.vision_model.encoder.layers.{}.mlp.fc2", "v.blk.{}.ffn_down"},
    {"vision_tower.vision_model.post_layernorm", "v.post_ln"},
    {0},
};
