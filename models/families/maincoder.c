/* Maincoder. conversion/maincoder.py. */
#include "models/families/qwen/qwen.h"

const struct family maincoder_family = {
    .name = "maincoder",
    .summary = "Maincoder",
    .hf = FAMILY_NAMES({"MaincoderForCausalLM"}),
    .tensors = {qk_norm_tensors, decoder_tensors},
    .keys = {base_keys, KEYS({"rope.dimension_count", GGUF_U32, IF_PRESENT, "head_dim"})},
    .vocabs = {&bpe_vocab},
};
