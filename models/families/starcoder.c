/* GPTBigCode: SantaCoder, StarCoder; StarCoder 2; and CodeShell. conversion/starcoder.py, codeshell.py. */
#include "models/families/shared.h"

static const struct key_row keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "n_positions"},
    {"embedding_length", GGUF_U32, REQUIRED, "n_embd"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "n_embd", .times = 4},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_head"},
    {"attention.head_count_kv", GGUF_U32, OR_DEFAULT, "num_query_groups", 1},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    FILE_TYPE_KEY,
    {0},
};

static const struct config_row config_rows[] = {
    {"activation_function", FROM_TEXT, .text = "'gelu_pytorch_tanh'"},
    {"num_query_groups", FROM_NOWHERE},
    {"multi_query", FROM_TEXT, .text = "true"},
    {"n_inner", FROM_KEY, "feed_forward_length"},
    {0},
};

const struct family starcoder_family = {
    .name = "starcoder",
    .summary = "GPTBigCode: SantaCoder, StarCoder",
    .hf = FAMILY_NAMES({"GPTBigCodeForCausalLM"}),
    .tensors = {TENSORS({"transformer.h.{}.attn.c_attn", "blk.{}.attn_qkv", "(head d + kv_head k + kv_head v) ...",
                         "head kv_head", .when = "multi_query"},
                        {"transformer.h.{}.attn.c_attn", "blk.{}.attn_qkv", "(head part d) ...", "head",
                         .when = "!multi_query"}),
                gpt_tensors},
    .forms = CONFIG_FORMS({"GPTBigCodeForCausalLM", "gpt_bigcode", NULL, CONFIG_TABLES(config_rows)}),
    .keys = {keys},
    .vocabs = {&bpe_vocab},
    .dimensions = {DIMENSIONS({"multi_query", "multi_query", 1}, {"kv_head", NULL, 1})},
};

const struct family codeshell_family = {
    .name = "codeshell",
    .summary = "CodeShell",
    .hf = FAMILY_NAMES({"CodeShellForCausalLM"}),
    .tensors = {TENSORS({"transformer.h.{}.attn.c_attn", "blk.{}.attn_qkv", "(head d + kv_head k + kv_head v) ...",
                         "head kv_head"}),
                gpt_tensors},
    .keys = {keys, KEYS({"rope.freq_base", GGUF_F32, ALWAYS, .value = 10000},
                        {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "linear"},
                        {"rope.scaling.factor", GGUF_F32, ALWAYS, .value = 1})},
    .vocabs = {&bpe_vocab},
    .dimensions = {DIMENSIONS({"kv_head", "num_query_groups", 1})},
};

static const struct config_row starcoder2_config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'gelu_pytorch_tanh'"},
    {"use_bias", FROM_TENSOR, "blk.0.attn_q.bias"},
    {"sliding_window", FROM_TEXT, .text = "null"},
    {0},
};

const struct family starcoder2_family = {
    .name = "starcoder2",
    .summary = "StarCoder 2",
    .hf = FAMILY_NAMES({"Starcoder2ForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.mlp.c_fc", "blk.{}.ffn_up", .parallel = "row"},
                        {"model.layers.{}.mlp.c_proj", "blk.{}.ffn_down", .parallel = "column"}),
                decoder_tensors},
    .forms = CONFIG_FORMS({"Starcoder2ForCausalLM", "starcoder2", NULL, CONFIG_TABLES(starcoder2_config_rows)}),
    .keys = {base_keys},
    .vocabs = {&bpe_vocab},
};
