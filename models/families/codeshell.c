/* CodeShell. conversion/codeshell.py. */
#include "models/families/shared.h"

static const struct key_row keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "n_positions"},
    {"embedding_length", GGUF_U32, REQUIRED, "n_embd"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "n_embd", .times = 4},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_head"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "num_query_groups"},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    FILE_TYPE_KEY,
    {"rope.freq_base", GGUF_F32, ALWAYS, .value = 10000},
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "linear"},
    {"rope.scaling.factor", GGUF_F32, ALWAYS, .value = 1},
    {0},
};

const struct family codeshell_family = {
    .name = "codeshell",
    .summary = "CodeShell",
    .hf = FAMILY_NAMES({"CodeShellForCausalLM"}),
    .tensors = {TENSORS({"transformer.h.{}.attn.c_attn", "blk.{}.attn_qkv", "(head d + kv_head k + kv_head v) ...",
                         "head kv_head"}),
                gpt_tensors},
    .keys = {keys},
    .vocabs = {&bpe_vocab},
    .dimensions = {DIMENSIONS({"kv_head", "num_query_groups", .kept = true})},
};
