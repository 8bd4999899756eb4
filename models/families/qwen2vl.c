/* Qwen2-VL, Qwen2.5-VL and Qwen2.5-Omni: their text halves. conversion/qwenvl.py. */
#include "models/families/qwen.h"

static const struct family_name names[] = {{"Qwen2VLForConditionalGeneration"},
                                           {"Qwen2_5_VLForConditionalGeneration"},
                                           {"Qwen2VLModel"},
                                           {"Qwen2_5OmniModel"},
                                           {0}};

static const char *const dropped_prefixes[] = {"thinker.", NULL};

const struct family qwen2vl_family = {
    .name = "qwen2vl",
    .summary = "Qwen2-VL, Qwen2.5-VL, Qwen2.5-Omni: the text half",
    .hf = names,
    .tensors = {decoder_tensors},
    .forms = qwen2_half_forms,
    .keys = {base_keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
    .dropped_prefixes = dropped_prefixes,
};
