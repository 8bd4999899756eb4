/* RND1, a diffusion language model: Qwen 3 with experts and bidirectional attention. conversion/qwen.py. */
#include "models/families/qwen/qwen.h"

const struct family rnd1_family = {
    .name = "rnd1",
    .summary = "RND1",
    .hf = FAMILY_NAMES({"RND1"}),
    .tensors = {qk_norm_tensors, qwen_moe_tensors, decoder_tensors},
    .keys = {base_keys, moe_keys,
             KEYS({"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
                  {".tokenizer.ggml.mask_token_id", GGUF_U32, IF_PRESENT, "mask_token_id"})},
    .vocabs = {&bpe_vocab},
};
