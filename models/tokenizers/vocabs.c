#include "models/tokenizers/vocab.h"

const struct vocab *const vocabs[] = {
    &spm_vocab,    &llama_hf_vocab,  &bpe_vocab,       &wordpiece_vocab,   &t5_vocab,   &xlmr_vocab,    &phi3_vocab,
    &gemma4_vocab, &kimi_vocab,      &glm_vocab,       &solar_vocab,       &glm4_vocab, &chatglm_vocab, &hunyuan_vocab,
    &tekken_vocab, &internlm2_vocab, &internlm3_vocab, &mistral_spm_vocab, NULL,
};
