/* Command-R, Aya. conversion/command_r.py. */
#include "models/families/shared.h"

static const struct relation_row tensors[] = {
    {"lm_head", NULL}, /* the embedding again: the architecture has no output */
    {0},
};

static const struct key_row keys[] = {
    /* the first is the trained length */
    {"context_length", GGUF_U32, REQUIRED, "model_max_length|max_position_embeddings"},
    {"logit_scale", GGUF_F32, REQUIRED, "logit_scale"},
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"},
    {0},
};

const struct family command_r_family = {
    .name = "command-r",
    .summary = "Command-R, Aya",
    .hf = FAMILY_NAMES({"CohereForCausalLM"}),
    .tensors = {tensors, qk_norm_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"CohereForCausalLM", "cohere", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows,
                                         CONFIG_ROWS({"use_qk_norm", FROM_TENSOR, "blk.0.attn_q_norm.weight"}))}),
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
};
