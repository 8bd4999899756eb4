/* OpenELM, of Apple: each layer has its own heads and width. conversion/openelm.py. Its directories lack Llama 2's
 * tokenizer, which it uses: users must add tokenizer.model. */
#include "models/families/layers.h"

#include <math.h>

#define LAYER "transformer.layers.{}."

static const struct relation_row tensors[] = {
    {"transformer.token_embeddings", "token_embd", .parallel = "row"},
    {"transformer.norm", "output_norm"},
    {LAYER "attn_norm", "blk.{}.attn_norm"},
    {LAYER "attn.qkv_proj", "blk.{}.attn_qkv", .parallel = "row"},
    {LAYER "attn.q_norm", "blk.{}.attn_q_norm"},
    {LAYER "attn.k_norm", "blk.{}.attn_k_norm"},
    {LAYER "attn.out_proj", "blk.{}.attn_output", .parallel = "column"},
    {LAYER "ffn_norm", "blk.{}.ffn_norm"},
    {LAYER "ffn.proj_1", "blk.{}.ffn_gate, blk.{}.ffn_up", GATE_UP, "gate up"},
    {LAYER "ffn.proj_2", "blk.{}.ffn_down", .parallel = "column"},
    {0},
};

/* Returns the nearest multiple, but not less than nine tenths of the value. */
static double multiple_near(double value, double divisor)
{
    double near = fmax(divisor, floor(trunc(value + divisor / 2) / divisor) * divisor);
    return near < 0.9 * value ? near + divisor : near;
}

static bool read_list(const struct model_builder *builder, const char *name, struct layers *ret_layers,
                      struct error *error)
{
    const struct json *list = hparams_get(builder->model->hparams, name);
    if (!layers_new(builder, ret_layers, error))
        return false;
    if (!json_is(list, JSON_ARRAY) || json_count(list) != ret_layers->n)
        return error_set(error, "config.json: %s is not a list with a value for each layer", name);
    layers_fill(ret_layers, list);
    return true;
}

static bool emit_lists(struct model_builder *builder, struct error *error)
{
    struct layers widths, heads, kv_heads;
    double divisor, width;
    if (!read_list(builder, "ffn_multipliers", &widths, error) ||
        !read_list(builder, "num_query_heads", &heads, error) ||
        !read_list(builder, "num_kv_heads", &kv_heads, error) ||
        !builder_number(builder, "ffn_dim_divisor", 0, &divisor, error) ||
        !builder_number(builder, "model_dim", 0, &width, error))
        return false;
    if (!(divisor >= 1))
        return error_set(error, "config.json: ffn_dim_divisor is missing, or less than 1");
    for (uint64_t i = 0; i < widths.n; i++) {
        widths.values[i] = multiple_near(widths.values[i] * width, divisor);
        if (!(widths.values[i] <= INT32_MAX))
            return error_set(error, "config.json: ffn_multipliers makes a layer too wide");
    }
    return layers_set_i32(builder, "feed_forward_length", &widths, error) &&
           layers_set_i32(builder, "attention.head_count", &heads, error) &&
           layers_set_i32(builder, "attention.head_count_kv", &kv_heads, error);
}

static const struct key_row keys[] = {
    {"block_count", GGUF_U32, REQUIRED, "num_transformer_layers"},
    {"context_length", GGUF_U32, REQUIRED, "max_context_length"},
    {"embedding_length", GGUF_U32, REQUIRED, "model_dim"},
    {.emit = emit_lists},
    {"rope.freq_base", GGUF_F32, REQUIRED, "rope_freq_constant"},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, ALWAYS, .value = 1e-6},
    {"rope.dimension_count", GGUF_U32, REQUIRED, "head_dim"},
    {"attention.key_length", GGUF_U32, REQUIRED, "head_dim"},
    {"attention.value_length", GGUF_U32, REQUIRED, "head_dim"},
    FILE_TYPE_KEY,
    {0},
};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    uint64_t n_layers;
    struct error unused;
    if (hparams_count(hparams, "num_transformer_layers", 1, MAX_LISTED_LAYERS, &n_layers, &unused))
        dimensions->n_layers = n_layers;
}

const struct family openelm_family = {
    .name = "openelm",
    .summary = "OpenELM",
    .hf = FAMILY_NAMES({"OpenELMForCausalLM"}),
    .tensors = {tensors},
    .keys = {keys},
    .vocabs = {&spm_vocab},
    .add_dimensions = add_dimensions,
};
