/* Phi 1, 1.5 and 2. conversion/phi.py. */
#include "models/families/shared.h"

static const struct key_row keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "n_positions|max_position_embeddings"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size|n_embd"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "hidden_size|n_embd", .times = 4},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads|n_head"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "num_attention_heads|n_head"},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon|layer_norm_eps"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_hidden},
    FILE_TYPE_KEY,
    {".tokenizer.ggml.add_bos_token", GGUF_BOOL, ALWAYS, .value = 0},
    {.emit = note_lost_rope},
    {0},
};

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'gelu_new'"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count"},
    {"qk_layernorm", FROM_TEXT, .text = "false"},
    {"intermediate_size", FROM_KEY, "feed_forward_length"},
    {0},
};

const struct family phi2_family = {
    .name = "phi2",
    .summary = "Phi 1, 1.5 and 2",
    .hf = FAMILY_NAMES({"PhiForCausalLM"}),
    .tensors = {TENSORS({"model.final_layernorm", "output_norm"},
                        {"model.layers.{}.self_attn.dense", "blk.{}.attn_output", .parallel = "column"},
                        {"model.layers.{}.mlp.fc1", "blk.{}.ffn_up", .parallel = "row"},
                        {"model.layers.{}.mlp.fc2", "blk.{}.ffn_down", .parallel = "column"}),
                decoder_tensors},
    .forms = CONFIG_FORMS({"PhiForCausalLM", "phi", NULL, CONFIG_TABLES(config_rows)}),
    .keys = {keys},
    .vocabs = {&bpe_vocab},
};
