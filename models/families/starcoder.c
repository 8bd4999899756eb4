/* GPTBigCode: SantaCoder, StarCoder. conversion/starcoder.py. */
#include "models/families/family.h"

static const struct family_name names[] = {{"GPTBigCodeForCausalLM"}, {0}};

static const struct relation_row tensors[] = {
    {"transformer.wte", "token_embd"},
    {"transformer.wpe", "position_embd"},
    {"transformer.ln_f", "output_norm"},
    {"lm_head", "output"},
    {"transformer.h.{}.ln_1", "blk.{}.attn_norm"},
    {"transformer.h.{}.attn.c_attn", "blk.{}.attn_qkv"},
    {"transformer.h.{}.attn.c_proj", "blk.{}.attn_output"},
    {"transformer.h.{}.ln_2", "blk.{}.ffn_norm"},
    {"transformer.h.{}.mlp.c_fc", "blk.{}.ffn_up"},
    {"transformer.h.{}.mlp.c_proj", "blk.{}.ffn_down"},
    {0},
};

static const struct key_row keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "n_positions"},
    {"embedding_length", GGUF_U32, REQUIRED, "n_embd"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "n_embd", .times = 4},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_head"},
    {"attention.head_count_kv", GGUF_U32, ALWAYS, .value = 1},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    FILE_TYPE_KEY,
    {0},
};

static const struct config_row config_rows[] = {
    {"activation_function", FROM_TEXT, .text = "'gelu_pytorch_tanh'"},
    {"multi_query", FROM_TEXT, .text = "true"},
    {"n_inner", FROM_KEY, "feed_forward_length"},
    {0},
};

static const struct config_form forms[] = {
    {"GPTBigCodeForCausalLM", "gpt_bigcode", NULL, config_rows},
    {0},
};

const struct family starcoder_family = {
    .name = "starcoder",
    .summary = "GPTBigCode: SantaCoder, StarCoder",
    .hf = names,
    .tensors = {tensors},
    .forms = forms,
    .keys = {keys},
    .vocabs = {&bpe_vocab},
};
