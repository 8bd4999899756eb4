/* GPT-2. conversion/gpt2.py. Its linear layers are stored transposed (Conv1D). */
#include "models/families/shared.h"

static const struct relation_row tensors[] = {
    {"^wte", "token_embd", .parallel = "row"},
    {"^wpe", "position_embd"},
    {"^ln_f", "output_norm"},
    {"lm_head", "output", .parallel = "row"},
    {"^h.{}.attn.bias", NULL}, /* masks, not biases; the converter fails on them */
    {"^h.{}.attn.masked_bias", NULL},
    {"^h.{}.ln_1", "blk.{}.attn_norm"},
    {"^h.{}.attn.c_attn.weight", "blk.{}.attn_qkv.weight", "i (part head d) -> (part head d) i", "head"},
    {"^h.{}.attn.c_attn.bias", "blk.{}.attn_qkv.bias", "(part head d) -> (part head d)", "head"},
    {"^h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight", "i o -> o i", "i"},
    {"^h.{}.attn.c_proj.bias", "blk.{}.attn_output.bias"},
    {"^h.{}.ln_2", "blk.{}.ffn_norm"},
    {"^h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight", "i o -> o i", "o"},
    {"^h.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias", .parallel = "row"},
    {"^h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight", "i o -> o i", "i"},
    {"^h.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias"},
    {0},
};

static const struct key_row keys[] = {
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"context_length", GGUF_U32, REQUIRED, "n_ctx|n_positions"},
    {"embedding_length", GGUF_U32, REQUIRED, "n_embd"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "n_embd", .times = 4},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_head"},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    FILE_TYPE_KEY,
    {0},
};

static const struct config_row config_rows[] = {
    {"activation_function", FROM_TEXT, .text = "'gelu_new'"},
    {"n_positions", FROM_KEY, "context_length"},
    {"n_inner", FROM_KEY, "feed_forward_length"},
    {0},
};

const struct family gpt2_family = {
    .name = "gpt2",
    .summary = "GPT-2",
    .hf = FAMILY_NAMES({"GPT2LMHeadModel"}),
    .tensors = {tensors},
    .forms = CONFIG_FORMS({"GPT2LMHeadModel", "gpt2", NULL, CONFIG_TABLES(config_rows)}),
    .keys = {keys},
    .vocabs = {&bpe_vocab},
    .prefix = "transformer.",
    .dropped_prefixes = TEXTS("transformer."),
};
