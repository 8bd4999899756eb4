/* Nemotron 4, and NVIDIA's models made smaller by search. */
#include "models/families/layers.h"
#include "models/families/shared.h"

#include <math.h>

/* Nemotron 4, Minitron. conversion/nemotron.py. */

/* Norms are stored minus one. */
static const struct relation_row nemotron_tensors[] = {
    {"model.norm.weight", "output_norm.weight", .map = &plus_one},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", .map = &plus_one},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight", .map = &plus_one},
    {0},
};

static bool emit_scaling(struct model_builder *builder, struct error *error)
{
    double factor, of_rope;
    if (!builder_number(builder, "factor", 0, &factor, error) ||
        !builder_number(builder, "rope.factor", NAN, &of_rope, error))
        return false;
    if (factor == 0)
        factor = of_rope;
    gguf_set_text(&builder->model->kvs, builder_key(builder, "rope.scaling.type"), isnan(factor) ? "none" : "linear");
    if (!isnan(factor))
        gguf_set_f32(&builder->model->kvs, builder_key(builder, "rope.scaling.factor"), factor);
    return true;
}

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'relu2'"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length"},
    {0},
};

const struct family nemotron_family = {
    .name = "nemotron",
    .summary = "Nemotron 4, Minitron",
    .hf = FAMILY_NAMES({"NemotronForCausalLM"}),
    .tensors = {nemotron_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"NemotronForCausalLM", "nemotron", NULL, CONFIG_TABLES(attention_bias_rows, mlp_bias_rows, config_rows)}),
    .keys = {base_keys,
             KEYS({"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
                  {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED,
                   "layer_norm_eps|layer_norm_epsilon|norm_epsilon|norm_eps"},
                  {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_hidden}, {.emit = emit_scaling})},
    .vocabs = {&spm_vocab},
    .defaults = "{'partial_rotary_factor': 0.5}",
    .keys_after_vocab = KEYS({".tokenizer.ggml.padding_token_id", GGUF_U32, ALWAYS, .value = 0},
                             {".tokenizer.ggml.unknown_token_id", GGUF_U32, ALWAYS, .value = 1}),
};

/* NVIDIA's Nemotron models made smaller by search (51B, Super 49B, Ultra 253B), and DeciLM 7B: Llama with heads and a
 * width of its own in each layer. conversion/deci.py. */

/* Layers without key heads have one matrix for attention, or none. */
static const struct relation_row deci_tensors[] = {
    {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", "(h half pair) ... -> (h pair half) ...", "h"},
    {"model.layers.{}.self_attn.k_proj", "blk.{}.attn_k", "(h half pair) ... -> (h pair half) ...", "h"},
    {"model.layers.{}.self_attn.v_proj", "blk.{}.attn_v", "(h half pair) ...", "h"},
    {"model.layers.{}.self_attn.o_proj", "blk.{}.attn_output", .parallel = "column", .when = "has:blk.{}.attn_q"},
    {"model.layers.{}.self_attn.linear_attn", "blk.{}.attn_output", .parallel = "column", .when = "!has:blk.{}.attn_q"},
    {0},
};

/* A layer's sizes, from block_configs. */
struct block {
    double n_heads, n_kv_heads, width;
};

static bool read_block(const struct json *config, double n_heads, double hidden, struct block *ret_block,
                       struct error *error)
{
    enum { MULTIPLE = 256, MAX_WIDTH = 1 << 28 };
    const struct json *attention = json_get(config, "attention");
    uint64_t in_group;
    double multiplier = 0;
    *ret_block = (struct block){0};
    if (json_u64(json_get(attention, "n_heads_in_group"), &in_group)) {
        if (in_group == 0)
            return error_set(error, "config.json: a layer of block_configs has n_heads_in_group 0");
        ret_block->n_heads = n_heads;
        ret_block->n_kv_heads = floor(n_heads / (double)in_group);
    } else if (json_is(json_get(attention, "replace_with_linear"), JSON_TRUE)) {
        ret_block->n_heads = n_heads;
    }
    json_double(json_get(json_get(config, "ffn"), "ffn_mult"), &multiplier);
    double width = trunc(2 * multiplier * hidden / 3);
    if (!(width >= 0 && width <= MAX_WIDTH))
        return error_set(error, "config.json: ffn_mult %g of a layer of block_configs is out of range", multiplier);
    ret_block->width = ceil(width / MULTIPLE) * MULTIPLE;
    return true;
}

static bool emit_blocks(struct model_builder *builder, struct error *error)
{
    const struct json *configs = hparams_get(builder->model->hparams, "block_configs"), *config = json_first(configs);
    double n_heads = (double)dimensions_get(&builder->dimensions, "head"),
           hidden = (double)dimensions_get(&builder->dimensions, "hidden");
    struct layers heads, kv_heads, widths;
    if (!layers_new(builder, &heads, error) || !layers_new(builder, &kv_heads, error) ||
        !layers_new(builder, &widths, error))
        return false;
    if (json_count(configs) != heads.n)
        return error_set(error, "config.json: block_configs has %zu layers, not %llu", (size_t)json_count(configs),
                         (unsigned long long)heads.n);
    for (uint64_t i = 0; i < heads.n; i++, config = json_next(config)) {
        struct block block;
        if (!read_block(config, n_heads, hidden, &block, error))
            return false;
        heads.values[i] = block.n_heads;
        kv_heads.values[i] = block.n_kv_heads;
        widths.values[i] = block.width;
    }
    if (hparams_rope_of_all(builder->model->hparams, "rope_theta") == NULL) /* none of full attention counts */
        gguf_kvs_remove(&builder->model->kvs, builder_key(builder, "rope.freq_base"));
    return layers_set_i32(builder, "attention.head_count_kv", &kv_heads, error) &&
           layers_set_i32(builder, "attention.head_count", &heads, error) &&
           layers_set_i32(builder, "feed_forward_length", &widths, error);
}

static const struct key_row searched_keys[] = {
    {"rope.freq_base", GGUF_F32, IF_PRESENT, "rope.rope_theta"},
    {.emit = emit_blocks},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"context_length", GGUF_U32, REQUIRED, "max_position_embeddings"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, REQUIRED, "rms_norm_eps"},
    {"attention.key_length", GGUF_U32, .compute = compute_hidden_per_head},
    {"attention.value_length", GGUF_U32, .compute = compute_hidden_per_head},
    FILE_TYPE_KEY,
    {0},
};

/* DeciLM 7B lists its key heads. */
static const struct key_row listed_keys[] = {
    {"attention.head_count_kv", GGUF_U32, IF_PRESENT, "num_key_value_heads_per_layer"},
    {0},
};

static bool emit_by_kind(struct model_builder *builder, struct error *error)
{
    if (hparams_get(builder->model->hparams, "block_configs") != NULL)
        return builder_emit(builder, searched_keys, error);
    return builder_emit(builder, base_keys, error) && builder_emit(builder, listed_keys, error);
}

/* All layers have heads of one size. */
static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    uint64_t head_dim = 0, head = dimensions_get(dimensions, "head");
    if (!json_u64(hparams_get(hparams, "head_dim"), &head_dim) && head > 0)
        head_dim = dimensions_get(dimensions, "hidden") / head;
    dimensions_set(dimensions, "pair", head_dim / 2);
}

/* Adds the vocabulary of Llama 3, or one from SentencePiece. */
static enum vocab_result add_vocab(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    enum { LLAMA3_VOCABULARY = 128256 };
    uint64_t n_vocab = LLAMA3_VOCABULARY;
    json_u64(hparams_get(input->hparams, "vocab_size"), &n_vocab);
    return vocab_add(n_vocab == LLAMA3_VOCABULARY ? &bpe_vocab : &llama_hf_vocab, kvs, input, error);
}

static const struct vocab vocab = {.name = "DeciLM's", .file = "tokenizer.json", .add = add_vocab};

const struct family deci_family = {
    .name = "deci",
    .summary = "Llama Nemotron 51B, Super 49B, Ultra 253B; DeciLM 7B",
    .hf = FAMILY_NAMES({"DeciLMForCausalLM"}),
    .tensors = {deci_tensors, decoder_tensors},
    .keys = {KEYS({.emit = emit_by_kind}, {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
                  {"rope.dimension_count", GGUF_U32, .compute = compute_head_dim})},
    .vocabs = {&vocab},
    .add_dimensions = add_dimensions,
    .add_extras = add_rope_freqs,
};
