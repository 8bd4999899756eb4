/* MPT. conversion/mpt.py. */
#include "models/families/shared.h"
#include "text/json_write.h"

#include <math.h>

static const struct relation_row tensors[] = {
    {"transformer.norm_f", "output_norm"},
    {"transformer.blocks.{}.norm_1", "blk.{}.attn_norm"},
    {"transformer.blocks.{}.attn.Wqkv", "blk.{}.attn_qkv", "(head d + kv_head k + kv_head v) ...", "head kv_head"},
    {"transformer.blocks.{}.attn.q_ln", "blk.{}.attn_q_norm"},
    {"transformer.blocks.{}.attn.k_ln", "blk.{}.attn_k_norm"},
    {"transformer.blocks.{}.attn.out_proj", "blk.{}.attn_output", .parallel = "column"},
    {"transformer.blocks.{}.norm_2", "blk.{}.ffn_norm"},
    {"transformer.blocks.{}.ffn.up_proj", "blk.{}.ffn_up", .parallel = "row"},
    {"transformer.blocks.{}.ffn.down_proj", "blk.{}.ffn_down", .parallel = "column"},
    {"transformer.blocks.{}.ffn.act.scales", "blk.{}.ffn.act.scales", .parallel = "row"},
    {0},
};

static bool compute_alibi_bias(const struct model_builder *builder, double *ret_value, struct error *error)
{
    *ret_value = 0;
    if (!json_bool(hparams_get(builder->model->hparams, "attn_config.alibi"), false))
        return true;
    return builder_number(builder, "attn_config.alibi_bias_max", 0, ret_value, error);
}

/* Without general.file_type. */
static const struct key_row keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "max_seq_len"},
    {"embedding_length", GGUF_U32, REQUIRED, "d_model"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"feed_forward_length", GGUF_U32, REQUIRED, "d_model", .times = 4},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_heads"},
    {"attention.head_count_kv", GGUF_U32, IF_TRUE, "attn_config.kv_n_heads"},
    {"attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-5},
    {"attention.clamp_kqv", GGUF_F32, IF_PRESENT, "attn_config.clip_qkv"},
    {"attention.max_alibi_bias", GGUF_F32, .compute = compute_alibi_bias},
    {0},
};

/* Adds SEA-LION's special tokens: it has only a SentencePiece model, and no file names them. */
static bool after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    struct gguf_kvs *kvs = &builder->model->kvs;
    if (checkpoint_side_file(input->checkpoint, "tokenizer.json") != NULL)
        return true;
    gguf_set_bool(kvs, "tokenizer.ggml.add_bos_token", false);
    gguf_set_u32(kvs, "tokenizer.ggml.padding_token_id", 3);
    gguf_set_u32(kvs, "tokenizer.ggml.eos_token_id", 1);
    gguf_set_u32(kvs, "tokenizer.ggml.unknown_token_id", 0);
    return true;
}

/* Returns the bias as a whole number, which the class requires. */
static const char *make_alibi_bias(const struct config_material *material)
{
    char digits[JSON_FLOAT_TEXT];
    double bias;
    if (!gguf_get_f64(material->kvs, "mpt.attention.max_alibi_bias", &bias) || !isfinite(bias))
        return NULL;
    if (bias == trunc(bias))
        return arena_printf(material->arena, "%.0f", bias);
    return arena_strdup(material->arena, json_f32_text((float)bias, digits));
}

static const struct config_row config_rows[] = {
    {"expansion_ratio", FROM_QUOTIENT, "feed_forward_length", "embedding_length"},
    {"attn_config", FROM_TEXT,
     .text = "{\n    'alibi': true,\n    'clip_qkv': <attention.clamp_kqv>,"
             "\n    'kv_n_heads': <attention.head_count_kv>\n  }"},
    {"attn_config.alibi_bias_max", .make = make_alibi_bias},
    {0},
};

static const struct config_row config_learned_rows[] = {
    {"expansion_ratio", FROM_QUOTIENT, "feed_forward_length", "embedding_length"},
    {"attn_config", FROM_TEXT,
     .text = "{'alibi': false, 'clip_qkv': <attention.clamp_kqv>, 'kv_n_heads': <attention.head_count_kv>}"},
    {0},
};

const struct family mpt_family = {
    .name = "mpt",
    .summary = "MPT",
    .hf = FAMILY_NAMES({"MPTForCausalLM"}, {"MptForCausalLM"}),
    .tensors = {tensors, gpt_tensors},
    .forms = CONFIG_FORMS({"MPTForCausalLM", "mpt", "tensor:position_embd.weight", CONFIG_TABLES(config_learned_rows)},
                          {"MPTForCausalLM", "mpt", NULL, CONFIG_TABLES(config_rows)}),
    .keys = {keys},
    .vocabs = {&bpe_vocab, &spm_vocab},
    .dimensions = {DIMENSIONS({"kv_head", "attn_config.kv_n_heads", .kept = true})},
    .after_vocab = after_vocab,
};
