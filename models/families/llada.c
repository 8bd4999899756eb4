/* LLaDA, a diffusion language model, dense and with experts. conversion/llada.py. */
#include "models/families/shared.h"

#define BLOCK "model.transformer.blocks.{}."

static const struct relation_row tensors[] = {
    {"model.transformer.wte", "token_embd", .parallel = "row"},
    {"model.transformer.ln_f", "output_norm"},
    {"model.transformer.ff_out", "output", .parallel = "row"},
    {BLOCK "attn_norm", "blk.{}.attn_norm"},
    {BLOCK "q_proj", "blk.{}.attn_q", QUERY_ROTARY, "head"},
    {BLOCK "k_proj", "blk.{}.attn_k", KEY_ROTARY, "kv_head"},
    {BLOCK "v_proj", "blk.{}.attn_v", "(kv_head d) ...", "kv_head"},
    {BLOCK "attn_out", "blk.{}.attn_output", .parallel = "column"},
    {BLOCK "ff_norm", "blk.{}.ffn_norm"},
    {BLOCK "ff_proj", "blk.{}.ffn_gate", .parallel = "row"},
    {BLOCK "up_proj", "blk.{}.ffn_up", .parallel = "row"},
    {BLOCK "ff_out", "blk.{}.ffn_down", .parallel = "column"},
    {0},
};

#define DIFFUSION                                                                                                      \
    {"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},                                                               \
    {                                                                                                                  \
        ".diffusion.shift_logits", GGUF_BOOL, ALWAYS, .value = 0                                                       \
    }

static const struct key_row keys[] = {
    {.emit = emit_pooling_type},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_head_dim},
    {"context_length", GGUF_U32, OR_DEFAULT, "max_sequence_length", 4096},
    {"embedding_length", GGUF_U32, OR_DEFAULT, "d_model", 4096},
    {"feed_forward_length", GGUF_U32, OR_DEFAULT, "mlp_hidden_size", 12288},
    DIFFUSION,
    {".tokenizer.ggml.mask_token_id", GGUF_U32, IF_PRESENT, "mask_token_id"},
    {0},
};

const struct family llada_family = {
    .name = "llada",
    .summary = "LLaDA",
    .hf = FAMILY_NAMES({"LLaDAModelLM"}),
    .tensors = {tensors},
    .keys = {base_keys, keys},
    .vocabs = {&plain_bpe_vocab},
    .keys_after_vocab = KEYS({".tokenizer.ggml.add_bos_token", GGUF_BOOL, ALWAYS, .value = 1}),
};

const struct family llada_moe_family = {
    .name = "llada-moe",
    .summary = "LLaDA MoE",
    .hf = FAMILY_NAMES({"LLaDAMoEModel"}, {"LLaDAMoEModelLM"}),
    .tensors = {qk_norm_tensors, expert_tensors, router_tensors, decoder_tensors},
    .keys = {base_keys, KEYS({"expert_feed_forward_length", GGUF_U32, IF_PRESENT, "expert_intermediate_size"},
                             {".tokenizer.ggml.mask_token_id", GGUF_U32, ALWAYS, .value = 156895}, DIFFUSION)},
    .vocabs = {&bpe_vocab},
};
