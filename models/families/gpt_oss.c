/* gpt-oss, with experts in MXFP4 or not quantized. conversion/gpt_oss.py. */
#include "models/families/family.h"

#include <string.h>

static const struct family_name names[] = {{"GptOssForCausalLM"}, {0}};

#define EXPERTS "model.layers.{}.mlp.experts."

static const struct tensor_row tensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.self_attn.sinks", "blk.{}.attn_sinks"},
    {"model.layers.{}.mlp.router", "blk.{}.ffn_gate_inp"},
    {EXPERTS "down_proj_blocks", "blk.{}.ffn_down_exps.weight", AS_IS, EXPERTS "down_proj_scales"},
    {EXPERTS "gate_up_proj_blocks", "blk.{}.ffn_gate_exps.weight", EVEN_MEMBERS, EXPERTS "gate_up_proj_scales"},
    {EXPERTS "gate_up_proj_blocks", "blk.{}.ffn_up_exps.weight", ODD_MEMBERS, EXPERTS "gate_up_proj_scales"},
    {EXPERTS "down_proj_bias", "blk.{}.ffn_down_exps.bias"},
    {EXPERTS "gate_up_proj_bias", "blk.{}.ffn_gate_exps.bias", EVEN_MEMBERS},
    {EXPERTS "gate_up_proj_bias", "blk.{}.ffn_up_exps.bias", ODD_MEMBERS},
    {EXPERTS "down_proj", "blk.{}.ffn_down_exps.weight", TRANSPOSED},
    {EXPERTS "gate_up_proj", "blk.{}.ffn_gate_exps.weight", TRANSPOSED_EVEN},
    {EXPERTS "gate_up_proj", "blk.{}.ffn_up_exps.weight", TRANSPOSED_ODD},
    {0},
};

static const struct key_row keys[] = {
    {"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {0},
};

/* The sinks have no ending of their own. */
static const char *rename_tensor(const struct synthesis *synthesis, const char *name)
{
    return strstr(name, "sinks") != NULL ? arena_printf(synthesis->model->arena, "%s.weight", name) : name;
}

const struct family gpt_oss_family = {
    .name = "gpt-oss",
    .summary = "gpt-oss",
    .hf = names,
    .tensors = {tensors, decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
    .rename = rename_tensor,
};
