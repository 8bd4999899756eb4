/* What drafts for Gemma 4: layers that have no keys and values but the last ones of the model that it drafts for, whose
 * states come in and go out by projections. conversion/gemma.py. */
#include "models/families/gemma.h"

static const struct family_name names[] = {{"Gemma4AssistantForCausalLM"}, {"Gemma4UnifiedAssistantForCausalLM"}, {0}};

/* Which tokens are likely at all is for transformers alone. */
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
    .summary = "draft models of Gemma 4",
    .hf = names,
    .tensors = {tensors, gemma4_tensors, decoder_tensors},
    .keys = {base_keys, gemma3_keys, gemma4_keys, keys},
    .vocabs = {&gemma4_vocab},
    .add_extras = gemma4_add_rope_factors,
    .adjust = gemma3_count_tokens,
};
