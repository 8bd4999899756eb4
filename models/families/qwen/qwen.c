/* Qwen 1. conversion/qwen.py. config.json's width is that of both halves of a feed-forward network together, and the
 * converter writes it unchanged. */
#include "models/families/shared.h"

#define LAYER "transformer.h.{}."

const struct family qwen_family = {
    .name = "qwen",
    .summary = "Qwen 1",
    .hf = FAMILY_NAMES({"QWenLMHeadModel"}),
    .tensors = {TENSORS({LAYER "attn.c_attn", "blk.{}.attn_qkv", "(part head d) ...", "head"},
                        {LAYER "mlp.w1", "blk.{}.ffn_up", .parallel = "row"},
                        {LAYER "mlp.w2", "blk.{}.ffn_gate", .parallel = "row"}),
                gpt_tensors},
    .keys = {base_keys},
    .vocabs = {&qwen_vocab},
};
