/* Qwen 1. conversion/qwen.py. The width that config.json says is that of both halves of a feed-forward together, and so
 * it is written. */
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
