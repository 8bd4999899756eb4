#include "models/diffusion/naming.h"

#define JOINED  "q ..., k ..., v ... -> (q + k + v) ..."
#define SWAPPED "(scale + shift) ... -> (shift + scale) ..."
#define BLOCK   "transformer_blocks.{}."
#define IMAGE   "joint_blocks.{}.x_block."
#define TEXT    "joint_blocks.{}.context_block."

/* clang-format off */
const struct relation_row sd3_names[] = {
    {"pos_embed.pos_embed", "pos_embed"},
    {"pos_embed.proj", "x_embedder.proj"},
    {"context_embedder", "context_embedder"},
    {"time_text_embed.timestep_embedder.linear_1", "t_embedder.mlp.0"},
    {"time_text_embed.timestep_embedder.linear_2", "t_embedder.mlp.2"},
    {"time_text_embed.text_embedder.linear_1", "y_embedder.mlp.0"},
    {"time_text_embed.text_embedder.linear_2", "y_embedder.mlp.2"},
    {"norm_out.linear", "final_layer.adaLN_modulation.1", SWAPPED},
    {"proj_out", "final_layer.linear"},

    {BLOCK "attn.to_q, " BLOCK "attn.to_k, " BLOCK "attn.to_v", IMAGE "attn.qkv", JOINED},
    {BLOCK "attn.norm_q", IMAGE "attn.ln_q"},
    {BLOCK "attn.norm_k", IMAGE "attn.ln_k"},
    {BLOCK "attn.to_out.0", IMAGE "attn.proj"},
    {BLOCK "attn2.to_q, " BLOCK "attn2.to_k, " BLOCK "attn2.to_v", IMAGE "attn2.qkv", JOINED},
    {BLOCK "attn2.norm_q", IMAGE "attn2.ln_q"},
    {BLOCK "attn2.norm_k", IMAGE "attn2.ln_k"},
    {BLOCK "attn2.to_out.0", IMAGE "attn2.proj"},
    {BLOCK "norm1.linear", IMAGE "adaLN_modulation.1"},
    {BLOCK "ff.net.0.proj", IMAGE "mlp.fc1"},
    {BLOCK "ff.net.2", IMAGE "mlp.fc2"},

    {BLOCK "attn.add_q_proj, " BLOCK "attn.add_k_proj, " BLOCK "attn.add_v_proj", TEXT "attn.qkv", JOINED},
    {BLOCK "attn.norm_added_q", TEXT "attn.ln_q"},
    {BLOCK "attn.norm_added_k", TEXT "attn.ln_k"},
    {BLOCK "attn.to_add_out", TEXT "attn.proj"},
    /* the last block has no more than a scale and a shift for the text, like the final layer */
    {BLOCK "last.norm1_context.linear", "joint_blocks.{}.last.context_block.adaLN_modulation.1", SWAPPED},
    {BLOCK "norm1_context.linear", TEXT "adaLN_modulation.1"},
    {BLOCK "ff_context.net.0.proj", TEXT "mlp.fc1"},
    {BLOCK "ff_context.net.2", TEXT "mlp.fc2"},
    {0},
};
/* clang-format on */
