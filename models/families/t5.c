/* T5, mT5, UMT5, and T5's encoder alone. conversion/t5.py. */
#include "models/families/shared.h"

static const struct relation_row encoder_tensors[] = {
    /* the embedding has up to three names, any of which may be stored */
    {"shared", "token_embd", .parallel = "row", .first_counts = true},
    {"encoder.embed_tokens", "token_embd", .parallel = "row", .first_counts = true, .forward_only = true},
    {"decoder.embed_tokens", "token_embd", .parallel = "row", .first_counts = true, .forward_only = true},
    {"lm_head", "output", .parallel = "row"},
    {"encoder.final_layer_norm", "enc.output_norm"},
    {"encoder.block.{}.layer.0.layer_norm", "enc.blk.{}.attn_norm"},
    {"encoder.block.{}.layer.0.SelfAttention.q", "enc.blk.{}.attn_q", "(head d) ...", "head"},
    {"encoder.block.{}.layer.0.SelfAttention.k", "enc.blk.{}.attn_k", "(head d) ...", "head"},
    {"encoder.block.{}.layer.0.SelfAttention.v", "enc.blk.{}.attn_v", "(head d) ...", "head"},
    {"encoder.block.{}.layer.0.SelfAttention.o", "enc.blk.{}.attn_o", .parallel = "column"},
    {"encoder.block.{}.layer.0.SelfAttention.relative_attention_bias", "enc.blk.{}.attn_rel_b", .parallel = "column"},
    {"encoder.block.{}.layer.1.layer_norm", "enc.blk.{}.ffn_norm"},
    {"encoder.block.{}.layer.1.DenseReluDense.wi_0", "enc.blk.{}.ffn_gate", .parallel = "row"},
    {"encoder.block.{}.layer.1.DenseReluDense.wi_1", "enc.blk.{}.ffn_up", .parallel = "row",
     .when = "has:enc.blk.{}.ffn_gate"},
    {"encoder.block.{}.layer.1.DenseReluDense.wi", "enc.blk.{}.ffn_up", .parallel = "row",
     .when = "!has:enc.blk.{}.ffn_gate"},
    {"encoder.block.{}.layer.1.DenseReluDense.wo", "enc.blk.{}.ffn_down", .parallel = "column"},
    {0},
};

static const struct relation_row t5_decoder_tensors[] = {
    {"decoder.final_layer_norm", "dec.output_norm"},
    {"decoder.block.{}.layer.0.layer_norm", "dec.blk.{}.attn_norm"},
    {"decoder.block.{}.layer.0.SelfAttention.q", "dec.blk.{}.attn_q", "(head d) ...", "head"},
    {"decoder.block.{}.layer.0.SelfAttention.k", "dec.blk.{}.attn_k", "(head d) ...", "head"},
    {"decoder.block.{}.layer.0.SelfAttention.v", "dec.blk.{}.attn_v", "(head d) ...", "head"},
    {"decoder.block.{}.layer.0.SelfAttention.o", "dec.blk.{}.attn_o", .parallel = "column"},
    {"decoder.block.{}.layer.0.SelfAttention.relative_attention_bias", "dec.blk.{}.attn_rel_b", .parallel = "column"},
    {"decoder.block.{}.layer.1.layer_norm", "dec.blk.{}.cross_attn_norm"},
    {"decoder.block.{}.layer.1.EncDecAttention.q", "dec.blk.{}.cross_attn_q", "(head d) ...", "head"},
    {"decoder.block.{}.layer.1.EncDecAttention.k", "dec.blk.{}.cross_attn_k", "(head d) ...", "head"},
    {"decoder.block.{}.layer.1.EncDecAttention.v", "dec.blk.{}.cross_attn_v", "(head d) ...", "head"},
    {"decoder.block.{}.layer.1.EncDecAttention.o", "dec.blk.{}.cross_attn_o", .parallel = "column"},
    {"decoder.block.{}.layer.1.EncDecAttention.relative_attention_bias", "dec.blk.{}.cross_attn_rel_b",
     .parallel = "column"},
    {"decoder.block.{}.layer.2.layer_norm", "dec.blk.{}.ffn_norm"},
    {"decoder.block.{}.layer.2.DenseReluDense.wi_0", "dec.blk.{}.ffn_gate", .parallel = "row"},
    {"decoder.block.{}.layer.2.DenseReluDense.wi_1", "dec.blk.{}.ffn_up", .parallel = "row",
     .when = "has:dec.blk.{}.ffn_gate"},
    {"decoder.block.{}.layer.2.DenseReluDense.wi", "dec.blk.{}.ffn_up", .parallel = "row",
     .when = "!has:dec.blk.{}.ffn_gate"},
    {"decoder.block.{}.layer.2.DenseReluDense.wo", "dec.blk.{}.ffn_down", .parallel = "column"},
    {0},
};

static const struct key_row head_keys[] = {
    {"context_length", GGUF_U32, OR_DEFAULT, "n_positions", 512},
    {"embedding_length", GGUF_U32, REQUIRED, "d_model"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "d_ff"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {0},
};

static const struct key_row attention_keys[] = {
    {"attention.head_count", GGUF_U32, REQUIRED, "num_heads"},
    {"attention.key_length", GGUF_U32, REQUIRED, "d_kv"},
    {"attention.value_length", GGUF_U32, REQUIRED, "d_kv"},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    {"attention.relative_buckets_count", GGUF_U32, REQUIRED, "relative_attention_num_buckets"},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    {0},
};

static const struct key_row encoder_tail_keys[] = {FILE_TYPE_KEY, {0}};

static const struct config_row config_rows[] = {
    {"feed_forward_proj", FROM_TEXT, .text = "'relu'"},
    {"is_encoder_decoder", FROM_TEXT, .text = "true"},
    {0},
};

static const struct config_row config_gated_rows[] = {
    {"feed_forward_proj", FROM_TEXT, .text = "'gated-gelu'"},
    {"is_encoder_decoder", FROM_TEXT, .text = "true"},
    {0},
};

/* mT5 is T5 in another class; UMT5 has positions in every layer. */
static const struct config_form t5_forms[] = {
    {"UMT5ForConditionalGeneration", "umt5", "tensor:enc.blk.1.attn_rel_b.weight", CONFIG_TABLES(config_gated_rows)},
    {"T5ForConditionalGeneration", "t5", "tensor:enc.blk.0.ffn_gate.weight", CONFIG_TABLES(config_gated_rows)},
    {"T5ForConditionalGeneration", "t5", NULL, CONFIG_TABLES(config_rows)},
    {0},
};

const struct family t5_family = {
    .name = "t5",
    .summary = "T5, mT5, UMT5",
    .hf = FAMILY_NAMES({"T5ForConditionalGeneration"}, {"T5WithLMHeadModel"}, {"MT5ForConditionalGeneration"},
                       {"UMT5ForConditionalGeneration"}, {"UMT5Model"}),
    .tensors = {encoder_tensors, t5_decoder_tensors},
    .forms = t5_forms,
    .keys = {head_keys, KEYS({"decoder_block_count", GGUF_U32, IF_PRESENT, "num_decoder_layers"}), attention_keys,
             KEYS({"decoder_start_token_id", GGUF_U32, REQUIRED, "decoder_start_token_id"}, FILE_TYPE_KEY)},
    .vocabs = {&t5_vocab, &spm_vocab},
};

const struct family t5encoder_family = {
    .name = "t5encoder",
    .summary = "T5 encoder",
    .hf = FAMILY_NAMES({"T5EncoderModel"}),
    .tensors = {encoder_tensors},
    .forms =
        CONFIG_FORMS({"T5EncoderModel", "t5", "tensor:enc.blk.0.ffn_gate.weight", CONFIG_TABLES(config_gated_rows)},
                     {"T5EncoderModel", "t5", NULL, CONFIG_TABLES(config_rows)}),
    .keys = {head_keys, attention_keys, encoder_tail_keys},
    .vocabs = {&t5_vocab, &spm_vocab},
};
