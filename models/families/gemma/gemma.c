/* Gemma 1. conversion/gemma.py. */
#include "models/families/gemma/gemma.h"

const struct relation_row gemma_tensors[] = {
    {"lm_head.weight", NULL},
    {"model.norm", "output_norm", .map = &plus_one},
    {"model.layers.{}.input_layernorm", "blk.{}.attn_norm", .map = &plus_one},
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm", .map = &plus_one},
    {0},
};

const struct key_row gemma_keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "max_position_embeddings"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "num_key_value_heads|num_attention_heads"},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, REQUIRED, "rms_norm_eps"},
    {"attention.key_length", GGUF_U32, REQUIRED, "head_dim"},
    {"attention.value_length", GGUF_U32, REQUIRED, "head_dim"},
    FILE_TYPE_KEY,
    {.emit = note_lost_rope},
    {0},
};

bool gemma_after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    gguf_set_bool(&builder->model->kvs, "tokenizer.ggml.add_space_prefix", false);
    return true;
}

static bool after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    enum { END_OF_TURN = 107 };
    struct gguf_kvs *kvs = &builder->model->kvs;
    if (gguf_kvs_find(kvs, "tokenizer.ggml.eot_token_id") == NULL)
        gguf_set_u32(kvs, "tokenizer.ggml.eot_token_id", END_OF_TURN);
    return gemma_after_vocab(builder, input, error);
}

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'gelu_pytorch_tanh'"},
    {"hidden_activation", FROM_TEXT, .text = "'gelu_pytorch_tanh'"},
    {"rope_theta", FROM_TEXT, .text = "10000.0"},
    {0},
};

const struct family gemma_family = {
    .name = "gemma",
    .summary = "Gemma 1",
    .hf = FAMILY_NAMES({"GemmaForCausalLM"}),
    .tensors = {gemma_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"GemmaForCausalLM", "gemma", NULL, CONFIG_TABLES(attention_bias_rows, config_rows)}),
    .keys = {gemma_keys},
    .vocabs = {&spm_vocab, &hf_gemma_vocab},
    .after_vocab = after_vocab,
};
