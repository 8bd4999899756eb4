/* Dream, a diffusion language model: Qwen 2 with bidirectional attention. conversion/dream.py. */
#include "models/families/shared.h"

const struct family dream_family = {
    .name = "dream",
    .summary = "Dream",
    .hf = FAMILY_NAMES({"DreamModel"}),
    .tensors = {decoder_tensors},
    .keys = {base_keys, KEYS({.emit = emit_pooling_type}, {"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
                             {".tokenizer.ggml.mask_token_id", GGUF_U32, IF_PRESENT, "mask_token_id"})},
    .vocabs = {&spm_vocab, &plain_bpe_vocab},
};
