/* CogVLM: vision encoder. conversion/cogvlm.py, CogVLMVisionModel. */
#include "models/projectors/projector.h"

static const struct relation_row tensors[] = {
    {"^patch_embedding.cls_embedding", "v.class_embd"},
    {"^patch_embedding.proj", "v.patch_embd"},
    {"^patch_embedding.position_embedding", "v.position_embd"},
    {"^transformer.layers.{}.input_layernorm", "v.blk.{}.ln1"},
    {"^transformer.layers.{}.post_attention_layernorm", "v.blk.{}.ln2"},
    {"^transformer.layers.{}.attention.query_key_value", "v.blk.{}.attn_qkv"},
    {"^transformer.layers.{}.attention.dense", "v.blk.{}.attn_out"},
    {"^transformer.layers.{}.mlp.fc1", "v.blk.{}.ffn_up"},
    {"^transformer.layers.{}.mlp.fc2", "v.blk.{}.ffn_down"},
    {"^linear_proj.linear_proj", "mm.model.fc"},
    {"^linear_proj.norm1", "mm.post_fc_norm"},
    {"^linear_proj.gate_proj", "mm.gate"},
    {"^linear_proj.dense_h_to_4h", "mm.up"},
    {"^linear_proj.dense_4h_to_h", "mm.down"},
    {"^boi", "v.boi"},
    {"^eoi", "v.eoi"},
    {0},
};

const struct family cogvlm_projector = {
    .name = "cogvlm",
    .summary = "CogVLM (vision encoder)",
    .hf = FAMILY_NAMES({"CogVLMForCausalLM"}),
    .tensors = {tensors},
    .keys = {tower_keys, vision_keys,
             KEYS({"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
                  PROJECTOR_TYPE("cogvlm"))},
    .prefix = "model.vision.",
    .dropped_prefixes = TEXTS("model.vision."),
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = TEXTS("model.vision.")),
};
