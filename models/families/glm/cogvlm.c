/* CogVLM: language model, with separate experts for the tokens of images. conversion/cogvlm.py. */
#include "models/families/llama/llama.h"

#define QKV "(head d + kv_head k + kv_head v) ..."

/* Names of the experts for images without "vision_", which would make them parts of the vision tower. */
static const struct relation_row tensors[] = {
    {"model.layers.{}.self_attn.language_expert_query_key_value", "blk.{}.attn_qkv", QKV, "head kv_head"},
    {"model.layers.{}.self_attn.language_expert_dense", "blk.{}.attn_output", NULL, "column"},
    {"model.layers.{}.mlp.language_mlp.gate_proj", "blk.{}.ffn_gate", NULL, "row"},
    {"model.layers.{}.mlp.language_mlp.up_proj", "blk.{}.ffn_up", NULL, "row"},
    {"model.layers.{}.mlp.language_mlp.down_proj", "blk.{}.ffn_down", NULL, "column"},
    {"model.layers.{}.self_attn.expert_query_key_value", "blk.{}.vis_attn_qkv", QKV, "head kv_head"},
    {"model.layers.{}.self_attn.expert_dense", "blk.{}.vis_attn_output", NULL, "column"},
    {"model.layers.{}.mlp.mlp.gate_proj", "blk.{}.vis_gate", NULL, "row"},
    {"model.layers.{}.mlp.mlp.up_proj", "blk.{}.vis_up", NULL, "row"},
    {"model.layers.{}.mlp.mlp.down_proj", "blk.{}.vis_down", NULL, "column"},
    {0},
};

const struct family cogvlm_family = {
    .name = "cogvlm",
    .summary = "CogVLM (language model)",
    .hf = FAMILY_NAMES({"CogVLMForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .keys = {base_keys, llama_keys},
    LLAMA_VOCABS,
    .dropped_parts = TEXTS("vision_"),
    .dimensions = {DIMENSIONS({"kv_head", "num_multi_query_heads", .kept = true})},
    .note = "the converter leaves out the experts for images, which its list of CogVLM's tensors has; here they are",
    .add_extras = add_rope_freqs,
};
