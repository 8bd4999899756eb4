/* Nanbeige 4.2: Llama that runs its layers several times. conversion/nanbeige.py. */
#include "models/families/llama/llama.h"

/* Computes the number of loops; 0 and null mean 1. */
static bool compute_loops(const struct model_builder *builder, double *ret_value, struct error *error)
{
    if (!builder_number(builder, "num_loops", 1, ret_value, error))
        return false;
    if (*ret_value < 1)
        *ret_value = 1;
    return true;
}

const struct family nanbeige_family = {
    .name = "nanbeige",
    .summary = "Nanbeige 4.2",
    .hf = FAMILY_NAMES({"NanbeigeForCausalLM"}),
    .tensors = {llama_tensors, sparse_moe_tensors, decoder_tensors},
    .keys = {base_keys, llama_keys,
             KEYS({"num_loops", GGUF_U32, .compute = compute_loops},
                  {"skip_loop_final_norm", GGUF_BOOL, OR_DEFAULT, "skip_loop_final_norm", 0})},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
};
