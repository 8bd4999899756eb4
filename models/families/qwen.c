/* Qwen 1. conversion/qwen.py. The width that config.json says is that of both halves of a feed-forward together, and so
 * it is written. */
#include "models/families/shared.h"

#define LAYER "transformer.h.{}."

static const struct relation_row tensors[] = {
    {"transformer.wte", "token_embd", .parallel = "row"},
    {"transformer.ln_f", "output_norm"},
    {"lm_head", "output", .parallel = "row"},
    {LAYER "ln_1", "blk.{}.attn_norm"},
    {LAYER "attn.c_attn", "blk.{}.attn_qkv", "(part head d) ...", "head"},
    {LAYER "attn.c_proj", "blk.{}.attn_output", .parallel = "column"},
    {LAYER "ln_2", "blk.{}.ffn_norm"},
    {LAYER "mlp.w1", "blk.{}.ffn_up", .parallel = "row"},
    {LAYER "mlp.w2", "blk.{}.ffn_gate", .parallel = "row"},
    {LAYER "mlp.c_proj", "blk.{}.ffn_down", .parallel = "column"},
    {0},
};

const struct family qwen_family = {
    .name = "qwen",
    .summary = "Qwen 1",
    .hf = FAMILY_NAMES({"QWenLMHeadModel"}),
    .tensors = {tensors},
    .keys = {base_keys},
    .vocabs = {&qwen_vocab},
};
