/* Maincoder. conversion/maincoder.py. */
#include "models/families/qwen.h"

static const struct family_name names[] = {{"MaincoderForCausalLM"}, {0}};

static const struct key_row keys[] = {{"rope.dimension_count", GGUF_U32, IF_PRESENT, "head_dim"}, {0}};

const struct family maincoder_family = {
    .name = "maincoder",
    .summary = "Maincoder",
    .hf = names,
    .tensors = {qwen3_tensors, decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
};
