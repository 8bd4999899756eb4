/* Draft models for Gemma 4: their layers use the last keys and values of the target model; projections take in and give
 * back its states. conversion/gemma.py. */
#include "models/families/gemma/gemma.h"

/* Only transformers uses the list of likely tokens. */
static const struct relation_row tensors[] = {
    {"pre_projection", "nextn.pre_projection"},
    {"post_projection", "nextn.post_projection"},
    {"masked_embedding.*", NULL},
    {0},
};

static const struct key_row keys[] = {
    {"embedding_length_out", GGUF_U32, REQUIRED, "backbone_hidden_size"},
    {"nextn_predict_layers", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {0},
};

const struct family gemma4_assistant_family = {
    .name = "gemma4-assistant",
    .no_forms = "the list of likely tokens below masked_embedding., nor whether there was one",
    .summary = "Gemma 4 draft models",
    .hf = FAMILY_NAMES({"Gemma4AssistantForCausalLM"}, {"Gemma4UnifiedAssistantForCausalLM"}),
    .tensors = {tensors, gemma4_tensors, qk_norm_tensors, decoder_tensors},
    .keys = {base_keys, gemma3_keys, gemma4_keys, keys},
    .vocabs = {&gemma4_vocab},
    .add_extras = gemma4_add_rope_factors,
    .adjust = gemma3_count_tokens,
};
