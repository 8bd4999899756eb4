/* Orion 14B. conversion/orion.py. config.json's epsilon of an RMS norm is that of a layer norm. */
#include "models/families/shared.h"

static const struct key_row keys[] = {
    FILE_TYPE_KEY,
    {"tensor_data_layout", GGUF_STRING, ALWAYS, .text = "Meta AI original pth"},
    {"context_length", GGUF_U32, REQUIRED, "max_sequence_length|max_position_embeddings|model_max_length"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "num_key_value_heads|num_attention_heads"},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "rms_norm_eps"},
    {.emit = note_lost_rope},
    {0},
};

const struct family orion_family = {
    .name = "orion",
    .summary = "Orion",
    .hf = FAMILY_NAMES({"OrionForCausalLM"}),
    .tensors = {decoder_tensors},
    .keys = {keys},
    .vocabs = {&spm_vocab},
};
