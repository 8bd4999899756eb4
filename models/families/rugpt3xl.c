/* ruGPT-3 XL: GPT-2 with Llama's names and separate queries, keys and values. conversion/gpt2.py. */
#include "models/families/shared.h"

const struct family rugpt3xl_family = {
    .name = "rugpt3xl",
    .architecture = "gpt2",
    .summary = "ruGPT-3 XL",
    .hf = FAMILY_NAMES({"RuGPT3XLForCausalLM"}),
    .tensors =
        {TENSORS(
             {"model.embed_positions", "position_embd"},
             {"model.layers.{}.self_attn.q_proj, model.layers.{}.self_attn.k_proj, model.layers.{}.self_attn.v_proj",
              "blk.{}.attn_qkv", "query ..., key ..., value ... -> (query + key + value) ...", "query key value"}),
         decoder_tensors},
    .keys = {base_keys},
    .vocabs = {&bpe_vocab},
};
