/* Gemma 2. conversion/gemma.py. */
#include "models/families/gemma/gemma.h"

const struct relation_row gemma2_tensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm", .map = &plus_one},
    {"model.layers.{}.pre_feedforward_layernorm", "blk.{}.ffn_norm", .map = &plus_one},
    {"model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm", .map = &plus_one},
    {0},
};

/* MERaLiON 2's audio tensors, on which the converter fails. */
static const struct relation_row foreign_tensors[] = {{"ln_speech.*", NULL}, {"speech_encoder.*", NULL}, {0}};

/* No key has the scale of queries: the size of a head, but hidden_size divided by the heads in the widest model, which
 * llama.cpp, too, recognizes by its layers. */
static const struct config_row common_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'gelu_pytorch_tanh'"},
    {"hidden_activation", FROM_TEXT, .text = "'gelu_pytorch_tanh'"},
    {"rope_theta", FROM_TEXT, .text = "10000.0"},
    {0},
};

static const struct config_row config_rows[] = {{"query_pre_attn_scalar", FROM_KEY, "attention.key_length"}, {0}};
static const struct config_row config_27b_rows[] = {
    {"query_pre_attn_scalar", FROM_QUOTIENT, "embedding_length", "attention.head_count"}, {0}};

const struct family gemma2_family = {
    .name = "gemma2",
    .summary = "Gemma 2",
    .hf = FAMILY_NAMES({"Gemma2ForCausalLM"}),
    .tensors = {foreign_tensors, gemma2_tensors, gemma_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"Gemma2ForCausalLM", "gemma2", "tensor:blk.45.attn_q.weight !tensor:blk.46.attn_q.weight",
         CONFIG_TABLES(attention_bias_rows, common_rows, config_27b_rows)},
        {"Gemma2ForCausalLM", "gemma2", NULL, CONFIG_TABLES(attention_bias_rows, common_rows, config_rows)}),
    .keys = {gemma_keys, KEYS({"attn_logit_softcapping", GGUF_F32, REQUIRED, "attn_logit_softcapping"},
                              {"final_logit_softcapping", GGUF_F32, REQUIRED, "final_logit_softcapping"},
                              {"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"})},
    .vocabs = {&spm_vocab, &hf_gemma_vocab},
    .dropped_prefixes = TEXTS("text_decoder."),
    .after_vocab = gemma_after_vocab,
};
