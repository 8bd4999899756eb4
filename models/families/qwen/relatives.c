/* Families that differ from Qwen 2 and 3 in a few tensors and keys. */
#include "models/families/qwen/qwen.h"
#include "models/families/shared.h"

/* Dream, a diffusion language model: Qwen 2 with bidirectional attention. conversion/dream.py. */

const struct family dream_family = {
    .name = "dream",
    .summary = "Dream",
    .hf = FAMILY_NAMES({"DreamModel"}),
    .tensors = {decoder_tensors},
    .keys = {base_keys, KEYS({.emit = emit_pooling_type}, {"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
                             {".tokenizer.ggml.mask_token_id", GGUF_U32, IF_PRESENT, "mask_token_id"})},
    .vocabs = {&spm_vocab, &plain_bpe_vocab},
};

/* Maincoder. conversion/maincoder.py. */

const struct family maincoder_family = {
    .name = "maincoder",
    .summary = "Maincoder",
    .hf = FAMILY_NAMES({"MaincoderForCausalLM"}),
    .tensors = {qk_norm_tensors, decoder_tensors},
    .keys = {base_keys, KEYS({"rope.dimension_count", GGUF_U32, IF_PRESENT, "head_dim"})},
    .vocabs = {&bpe_vocab},
};

/* RND1, a diffusion language model: Qwen 3 with experts and bidirectional attention. conversion/qwen.py. */

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
