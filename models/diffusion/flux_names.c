#include "models/diffusion/naming.h"

#define JOINED     "q ..., k ..., v ... -> (q + k + v) ..."
#define JOINED_MLP "q ..., k ..., v ..., mlp ... -> (q + k + v + mlp) ..."
#define SWAPPED    "(scale + shift) ... -> (shift + scale) ..."
#define BLOCK      "transformer_blocks.{}."
#define SINGLE     "single_transformer_blocks.{}."

/* clang-format off */
const struct relation_row flux_names[] = {
    {"x_embedder", "img_in"},
    {"context_embedder", "txt_in"},
    {"time_text_embed.timestep_embedder.linear_1", "time_in.in_layer"},
    {"time_text_embed.timestep_embedder.linear_2", "time_in.out_layer"},
    {"time_text_embed.guidance_embedder.linear_1", "guidance_in.in_layer"},
    {"time_text_embed.guidance_embedder.linear_2", "guidance_in.out_layer"},
    {"time_text_embed.text_embedder.linear_1", "vector_in.in_layer"},
    {"time_text_embed.text_embedder.linear_2", "vector_in.out_layer"},
    {"norm_out.linear", "final_layer.adaLN_modulation.1", SWAPPED},
    {"proj_out", "final_layer.linear"},

    {BLOCK "attn.to_q, " BLOCK "attn.to_k, " BLOCK "attn.to_v", "double_blocks.{}.img_attn.qkv", JOINED},
    {BLOCK "attn.add_q_proj, " BLOCK "attn.add_k_proj, " BLOCK "attn.add_v_proj", "double_blocks.{}.txt_attn.qkv",
     JOINED},
    {BLOCK "attn.norm_q.weight", "double_blocks.{}.img_attn.norm.query_norm.scale"},
    {BLOCK "attn.norm_k.weight", "double_blocks.{}.img_attn.norm.key_norm.scale"},
    {BLOCK "attn.norm_added_q.weight", "double_blocks.{}.txt_attn.norm.query_norm.scale"},
    {BLOCK "attn.norm_added_k.weight", "double_blocks.{}.txt_attn.norm.key_norm.scale"},
    {BLOCK "attn.to_out.0", "double_blocks.{}.img_attn.proj"},
    {BLOCK "attn.to_add_out", "double_blocks.{}.txt_attn.proj"},
    {BLOCK "norm1.linear", "double_blocks.{}.img_mod.lin"},
    {BLOCK "norm1_context.linear", "double_blocks.{}.txt_mod.lin"},
    {BLOCK "ff.net.0.proj", "double_blocks.{}.img_mlp.0"},
    {BLOCK "ff.net.2", "double_blocks.{}.img_mlp.2"},
    {BLOCK "ff_context.net.0.proj", "double_blocks.{}.txt_mlp.0"},
    {BLOCK "ff_context.net.2", "double_blocks.{}.txt_mlp.2"},

    {SINGLE "attn.to_q, " SINGLE "attn.to_k, " SINGLE "attn.to_v, " SINGLE "proj_mlp", "single_blocks.{}.linear1",
     JOINED_MLP},
    {SINGLE "attn.norm_q.weight", "single_blocks.{}.norm.query_norm.scale"},
    {SINGLE "attn.norm_k.weight", "single_blocks.{}.norm.key_norm.scale"},
    {SINGLE "norm.linear", "single_blocks.{}.modulation.lin"},
    {SINGLE "proj_out", "single_blocks.{}.linear2"},
    {0},
};
/* clang-format on */
