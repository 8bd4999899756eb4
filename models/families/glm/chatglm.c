/* ChatGLM 2 and 3, glm-4-9b. conversion/chatglm.py. */
#include "models/families/shared.h"
#include "models/tokenizers/vocab.h"

#include <math.h>

static const struct relation_row tensors[] = {
    {"encoder.layers.{}.self_attention.query_key_value", "blk.{}.attn_qkv", "(head d + kv_head k + kv_head v) ...",
     "head kv_head"},
    {"encoder.layers.{}.self_attention.dense", "blk.{}.attn_output", .parallel = "column", .when = "!hf_names"},
    {"encoder.layers.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up", "(gate + up) ...", "gate up", .when = "!hf_names"},
    {"encoder.layers.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down", .parallel = "column", .when = "!hf_names"},
    {"encoder.layers.{}.input_layernorm", "blk.{}.attn_norm", .when = "!hf_names"},
    {"encoder.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm", .when = "!hf_names"},
    {"embedding.word_embeddings", "token_embd", .parallel = "row", .when = "!hf_names"},
    {"encoder.final_layernorm", "output_norm", .when = "!hf_names"},
    {"output_layer", "output", .parallel = "row", .when = "!hf_names"},
    {"rotary_pos_emb.inv_freq", NULL},
    {"model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up", "(gate + up) ...", "gate up", .when = "hf_names"},
    {0},
};

/* Like the converter, uses the width as the context length if the sequence length is missing. */
static const struct key_row keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "seq_length|hidden_size|n_embed"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size|n_embed"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "hidden_size|n_embed", .times = 4},
    {"feed_forward_length", GGUF_U32, IF_PRESENT, "ffn_hidden_size|intermediate_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_head|num_attention_heads"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED,
     "multi_query_group_num|num_key_value_heads|n_head|num_attention_heads"},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, OR_DEFAULT, "layernorm_epsilon", 1e-5},
    FILE_TYPE_KEY,
    {0},
};

static bool compute_rotary(const struct model_builder *builder, double *ret_value, struct error *error)
{
    uint64_t head = dimensions_get(&builder->dimensions, "head"),
             hidden = dimensions_get(&builder->dimensions, "hidden");
    double factor, width;
    if (head == 0 || hidden == 0)
        return error_set(error, "config.json: hidden_size or num_attention_heads is missing, 0, or too large");
    if (!builder_number(builder, "rope.partial_rotary_factor", 0.5, &factor, error) ||
        !builder_number(builder, "attention_dim", (double)(hidden / head), &width, error))
        return false;
    *ret_value = trunc(width * factor);
    return true;
}

static bool compute_base(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double ratio;
    if (!builder_number(builder, "rope_ratio", 1, &ratio, error))
        return false;
    *ret_value = 10000 * ratio;
    return true;
}

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    if (hparams_get(hparams, "multi_query_group_num") == NULL && hparams_get(hparams, "seq_length") == NULL)
        dimensions_set(dimensions, "hf_names", 1);
}

static bool pad_vocabulary(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    uint64_t n_tokens;
    if (is_chatglm3(builder->model->hparams))
        return true;
    if (!hparams_count(builder->model->hparams, "vocab_size", 0, UINT32_MAX, &n_tokens, error) ||
        !hparams_count(builder->model->hparams, "padded_vocab_size|vocab_size", 0, UINT32_MAX, &n_tokens, error))
        return false;
    return hparams_override(builder->model->hparams, "vocab_size", n_tokens, error);
}

static const struct config_row common_rows[] = {
    {"rms_norm_eps", FROM_KEY, "attention.layer_norm_rms_epsilon"},
    {"layernorm_epsilon", FROM_NOWHERE},
    {"head_dim", FROM_QUOTIENT, "embedding_length", "attention.head_count"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count"},
    {"max_position_embeddings", FROM_KEY, "context_length"},
    {0},
};

const struct family chatglm_family = {
    .name = "chatglm",
    .summary = "ChatGLM 2 and 3, glm-4-9b",
    .hf = FAMILY_NAMES({"GlmForCausalLM"}, {"ChatGLMModel"}, {"ChatGLMForConditionalGeneration"}),
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"GlmForCausalLM", "glm", "tensor:blk.0.attn_q.bias|tensor:blk.0.attn_qkv.bias",
         CONFIG_TABLES(silu_rows, common_rows, CONFIG_ROWS({"attention_bias", FROM_TEXT, .text = "true"}))},
        {"GlmForCausalLM", "glm", NULL,
         CONFIG_TABLES(silu_rows, common_rows, CONFIG_ROWS({"attention_bias", FROM_TEXT, .text = "false"}))}),
    .keys = {keys, KEYS({"rope.dimension_count", GGUF_U32, .compute = compute_rotary},
                        {".tokenizer.ggml.add_bos_token", GGUF_BOOL, ALWAYS, .value = 0},
                        {"rope.freq_base", GGUF_F32, .compute = compute_base}, {.emit = note_lost_rope})},
    .vocabs = {&chatglm3_vocab, &chatglm_vocab},
    .dropped_prefixes = TEXTS("transformer."),
    .dimensions = {DIMENSIONS({"kv_head", "multi_query_group_num", .kept = true})},
    .add_dimensions = add_dimensions,
    .before_vocab = pad_vocabulary,
};
