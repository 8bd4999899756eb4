/* Dream, which writes by diffusion: Qwen 2 that looks both ways. conversion/dream.py. */
#include "models/families/shared.h"

static const struct key_row keys[] = {
    {.emit = emit_pooling_type},
    {"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
    {".tokenizer.ggml.mask_token_id", GGUF_U32, IF_PRESENT, "mask_token_id"},
    {0},
};

const struct family dream_family = {
    .name = "dream",
    .summary = "Dream",
    .hf = FAMILY_NAMES({"DreamModel"}),
    .tensors = {decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&spm_vocab, &plain_bpe_vocab},
};
