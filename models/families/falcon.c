/* Falcon. conversion/falcon.py. */
#include "models/families/shared.h"

static const struct relation_row tensors[] = {
    {"transformer.word_embeddings", "token_embd", .parallel = "row"},
    {"transformer.ln_f", "output_norm"},
    {"lm_head", "output", .parallel = "row"},
    {"transformer.h.{}.input_layernorm", "blk.{}.attn_norm", .when = "!has:blk.{}.attn_norm_2"}, /* 7B */
    {"transformer.h.{}.ln_mlp", "blk.{}.attn_norm", .when = "has:blk.{}.attn_norm_2"},           /* 40B */
    {"transformer.h.{}.ln_attn", "blk.{}.attn_norm_2"},
    {"transformer.h.{}.self_attention.query_key_value", "blk.{}.attn_qkv",
     "(kv_head (query + key + value) d) c -> (kv_head query d + kv_head key d + kv_head value d) c", "kv_head/query"},
    {"transformer.h.{}.self_attention.dense", "blk.{}.attn_output", .parallel = "column"},
    {"transformer.h.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up", .parallel = "row"},
    {"transformer.h.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down", .parallel = "column"},
    {0},
};

/* Counts key heads. Without a count all queries share one, unless config.json turns that off. If all share one,
 * transformers' class still fills in a count: that of the queries. */
static uint64_t count_key_heads(const struct hparams *hparams, uint64_t n_heads)
{
    enum { MAX_HEADS = 1 << 24 };
    struct error unused;
    uint64_t n_kv_heads;
    const struct json *share = hparams_get(hparams, "multi_query");
    if (!hparams_count(hparams, KV_HEAD_COUNT, 1, MAX_HEADS, &n_kv_heads, &unused))
        return json_bool(share, true) ? 1 : n_heads;
    bool is_new = json_bool(hparams_get(hparams, "new_decoder_architecture"), false);
    return n_kv_heads == n_heads && json_bool(share, false) && !is_new ? 1 : n_kv_heads;
}

static bool compute_key_heads(const struct model_builder *builder, double *ret_value, struct error *error)
{
    *ret_value = (double)count_key_heads(builder->model->hparams, dimensions_get(&builder->dimensions, "head"));
    return true;
}

static const struct key_row keys[] = {
    {"context_length", GGUF_U32, ALWAYS, .value = 2048}, /* config.json lacks it */
    {"tensor_data_layout", GGUF_STRING, ALWAYS, .text = "jploski"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "hidden_size", .times = 4},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads|n_head"},
    {"attention.head_count_kv", GGUF_U32, .compute = compute_key_heads},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    FILE_TYPE_KEY,
    {.emit = note_lost_rope},
    {0},
};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    uint64_t n_heads = dimensions_get(dimensions, "head"), n_kv_heads = count_key_heads(hparams, n_heads);
    dimensions_set(dimensions, "kv_head", n_kv_heads);
    if (n_heads == 0)
        return;
    dimensions_set(dimensions, "d", dimensions_get(dimensions, "hidden") / n_heads);
    if (n_heads % n_kv_heads == 0)
        dimensions_set(dimensions, "query", n_heads / n_kv_heads);
}

static const char *shares_key_head(const struct config_material *material)
{
    double n_kv_heads;
    bool shares = !config_number_of_layer(material, "attention.head_count_kv", 0, &n_kv_heads) || n_kv_heads == 1;
    return shares ? "true" : "false";
}

static const struct config_row config_new_rows[] = {
    {"num_kv_heads", FROM_KEY, "attention.head_count_kv"},
    {"alibi", FROM_TEXT, .text = "false"},
    {"bias", FROM_TENSOR, "blk.0.attn_qkv.bias"},
    {"ffn_hidden_size", FROM_KEY, "feed_forward_length"},
    {"parallel_attn", FROM_NO_TENSOR, "blk.0.ffn_norm.weight"},
    {"new_decoder_architecture", FROM_TEXT, .text = "true"},
    {"num_ln_in_parallel_attn", FROM_TEXT, .text = "2"},
    {"multi_query", FROM_TEXT, .text = "false"},
    {0},
};

static const struct config_row config_old_rows[] = {
    {"alibi", FROM_TEXT, .text = "false"},
    {"bias", FROM_TENSOR, "blk.0.attn_qkv.bias"},
    {"ffn_hidden_size", FROM_KEY, "feed_forward_length"},
    {"parallel_attn", FROM_NO_TENSOR, "blk.0.ffn_norm.weight"},
    {"new_decoder_architecture", FROM_TEXT, .text = "false"},
    {"multi_query", .make = shares_key_head},
    {0},
};

const struct family falcon_family = {
    .name = "falcon",
    .summary = "Falcon",
    .hf = FAMILY_NAMES({"FalconForCausalLM"}, {"RWForCausalLM"}),
    .tensors = {tensors},
    .forms =
        CONFIG_FORMS({"FalconForCausalLM", "falcon", "tensor:blk.0.attn_norm_2.weight", CONFIG_TABLES(config_new_rows)},
                     {"FalconForCausalLM", "falcon", NULL, CONFIG_TABLES(config_old_rows)}),
    .keys = {keys},
    .vocabs = {&bpe_vocab},
    .dimensions = {DIMENSIONS({"key", NULL, 1}, {"value", NULL, 1})},
    .add_dimensions = add_dimensions,
};
