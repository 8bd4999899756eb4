/* Falcon and Falcon-H1. */
#include "models/families/linear_attention.h"
#include "models/families/shared.h"
#include "quant/views/unpack.h"

/* Falcon. conversion/falcon.py. */

static const struct relation_row falcon_tensors[] = {
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
    if (!hparams_count(hparams, "num_kv_heads|n_head_kv|num_key_value_heads|n_kv_heads", 1, MAX_HEADS, &n_kv_heads,
                       &unused))
        return json_bool(share, true) ? 1 : n_heads;
    bool is_new = json_bool(hparams_get(hparams, "new_decoder_architecture"), false);
    return n_kv_heads == n_heads && json_bool(share, false) && !is_new ? 1 : n_kv_heads;
}

static bool compute_key_heads(const struct model_builder *builder, double *ret_value, struct error *error)
{
    *ret_value = (double)count_key_heads(builder->model->hparams, dimensions_get(&builder->dimensions, "head"));
    return true;
}

static const struct key_row falcon_keys[] = {
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

static void falcon_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
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
    .tensors = {falcon_tensors},
    .forms =
        CONFIG_FORMS({"FalconForCausalLM", "falcon", "tensor:blk.0.attn_norm_2.weight", CONFIG_TABLES(config_new_rows)},
                     {"FalconForCausalLM", "falcon", NULL, CONFIG_TABLES(config_old_rows)}),
    .keys = {falcon_keys},
    .vocabs = {&bpe_vocab},
    .dimensions = {DIMENSIONS({"key", NULL, 1}, {"value", NULL, 1})},
    .add_dimensions = falcon_add_dimensions,
};

/* Falcon-H1: layers with Mamba 2 and attention in parallel. conversion/falcon_h1.py.
 *
 * The model multiplies results by numbers of its configuration; a GGUF's weights include these multipliers. */

#define TIMES(id, text, ...)                                                                                           \
    static const struct view *multiply_##id(struct arena *arena, const struct dimensions *dimensions,                  \
                                            enum direction direction, const struct view *view)                         \
    {                                                                                                                  \
        static const char *const factors[] = {__VA_ARGS__};                                                            \
        return elementwise_multiply(arena, dimensions, direction, view, factors, sizeof factors / sizeof *factors);    \
    }                                                                                                                  \
    static const struct elementwise times_##id = {                                                                     \
        .forward_text = "x * " text,                                                                                   \
        .backward_text = "x / " text,                                                                                  \
        .apply = multiply_##id,                                                                                        \
        .exactness = "where the factor is not a power of 2, to one unit in the last place",                            \
    }

TIMES(down, "mlp_multipliers[1]", "down");
TIMES(gate, "mlp_multipliers[0]", "gate");
TIMES(key, "key_multiplier * attention_in_multiplier", "key_multiplier", "attention_in_multiplier");
TIMES(in, "attention_in_multiplier", "attention_in_multiplier");
TIMES(out, "attention_out_multiplier", "attention_out_multiplier");
TIMES(ssm_out, "ssm_out_multiplier", "ssm_out_multiplier");
TIMES(head, "lm_head_multiplier", "lm_head_multiplier");
TIMES(embedding, "embedding_multiplier", "embedding_multiplier");

/* Multipliers from ssm_multipliers, for the rows of mamba.in_proj's five parts. */
static const char *const part_factors[] = {"ssm_z", "ssm_x", "ssm_b", "ssm_c", "ssm_dt"};

enum { N_PARTS = sizeof part_factors / sizeof *part_factors };

static const struct view *multiply_parts(struct arena *arena, const struct dimensions *dimensions,
                                         enum direction direction, const struct view *view)
{
    const uint64_t channels = dimensions_get(dimensions, "inner"), states = dimensions_get(dimensions, "states"),
                   sizes[N_PARTS] = {channels, channels, states, states, UINT64_MAX};
    const uint64_t n_rows = view->shape[0], shape[2] = {n_rows, 1};
    const struct sharing sharing = {1, view_row_elements(view), NULL};
    float *factors = arena_array(arena, n_rows, sizeof *factors);
    for (uint64_t row = 0, part = 0, end = sizes[0]; row < n_rows; row++) {
        while (row >= end && part + 1 < N_PARTS)
            end = ++part + 1 < N_PARTS ? end + sizes[part] : UINT64_MAX;
        factors[row] = dimensions_factor(dimensions, part_factors[part]);
    }
    return view_combine(arena, view, direction == FORWARD ? MULTIPLY : DIVIDE, view_numbers(arena, 2, shape, factors),
                        &sharing);
}

static const struct view *multiply_ssm_in(struct arena *arena, const struct dimensions *dimensions,
                                          enum direction direction, const struct view *view)
{
    static const char *const all[] = {"ssm_in_multiplier"};
    const struct dtype *dtype = view->dtype;
    if (dimensions == NULL || dimensions->n_factors == 0 || view->rank != 2 || view->n_elements == 0)
        return view;
    if (direction == FORWARD)
        view = elementwise_multiply(arena, dimensions, direction, view, all, 1);
    view = multiply_parts(arena, dimensions, direction, view);
    if (dtype == &f16_dtype)
        view = view_convert(arena, view, &f16_dtype);
    return direction == FORWARD ? view : elementwise_multiply(arena, dimensions, direction, view, all, 1);
}

static const struct elementwise times_ssm_in = {
    .forward_text = "x * ssm_in_multiplier * ssm_multipliers[part]",
    .backward_text = "x / ssm_multipliers[part] / ssm_in_multiplier",
    .apply = multiply_ssm_in,
    .exactness = "where the factors are not powers of 2, to one unit in the last place",
};

/* ffn_norm has no suffix, as in the converter. */
static const struct relation_row falcon_h1_tensors[] = {
    {"model.embed_tokens", "token_embd", .parallel = "row", .map = &times_embedding},
    {"model.final_layernorm", "output_norm"},
    {"lm_head", "output", .parallel = "row", .map = &times_head},
    {"model.layers.{}.pre_ff_layernorm.weight", "blk.{}.ffn_norm"},
    {"model.layers.{}.feed_forward.gate_proj", "blk.{}.ffn_gate", .parallel = "row", .map = &times_gate},
    {"model.layers.{}.feed_forward.up_proj", "blk.{}.ffn_up", .parallel = "row"},
    {"model.layers.{}.feed_forward.down_proj", "blk.{}.ffn_down", .parallel = "column", .map = &times_down},
    {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", "(head d) ...", "head", .map = &times_in},
    {"model.layers.{}.self_attn.k_proj", "blk.{}.attn_k", "(kv_head d) ...", "kv_head", .map = &times_key},
    {"model.layers.{}.self_attn.v_proj", "blk.{}.attn_v", "(kv_head d) ...", "kv_head", .map = &times_in},
    {"model.layers.{}.self_attn.o_proj", "blk.{}.attn_output", .parallel = "column", .map = &times_out},
    {"model.layers.{}.mamba.in_proj", "blk.{}.ssm_in", "(half channel + half state_group state + mamba_head) ...",
     "channel state_group mamba_head", .map = &times_ssm_in},
    {"model.layers.{}.mamba.out_proj", "blk.{}.ssm_out", .parallel = "column", .map = &times_ssm_out},
    {0},
};

static bool compute_heads(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double inner, head_dim;
    if (!builder_number(builder, "mamba_d_ssm", 0, &inner, error) ||
        !builder_number(builder, "mamba_d_head|head_dim", 64, &head_dim, error))
        return false;
    if (!(head_dim >= 1) || inner / head_dim != (double)(uint64_t)(inner / head_dim))
        return error_set(error, "config.json: mamba_d_ssm, %.17g, is not a multiple of mamba_d_head, %.17g", inner,
                         head_dim);
    *ret_value = inner / head_dim;
    return true;
}

static const struct key_row falcon_h1_keys[] = {
    {"context_length", GGUF_U32, OR_DEFAULT, "max_position_embeddings", 0},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size|d_model"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"ssm.conv_kernel", GGUF_U32, OR_DEFAULT, "conv_kernel|d_conv|mamba_conv_kernel|mamba_d_conv", 4},
    {"ssm.inner_size", GGUF_U32, REQUIRED, "mamba_d_ssm"},
    {"ssm.state_size", GGUF_U32, OR_DEFAULT, "state_size|d_state|mamba_state_size|mamba_d_state", 128},
    {"ssm.time_step_rank", GGUF_U32, .compute = compute_heads},
    {"ssm.group_count", GGUF_U32, OR_DEFAULT, "n_groups|mamba_n_groups", 1},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_epsilon|rms_norm_eps", 1e-5},
    FILE_TYPE_KEY,
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "num_key_value_heads"},
    {"attention.key_length", GGUF_U32, REQUIRED, "head_dim"},
    {"attention.value_length", GGUF_U32, REQUIRED, "head_dim"},
    {"rope.freq_base", GGUF_F32, REQUIRED, "rope.rope_theta"},
    {0},
};

static void set_factor(struct dimensions *dimensions, const char *name, const struct json *value)
{
    double number;
    if (json_double(value, &number))
        dimensions_set_factor(dimensions, name, (float)number);
}

static const struct dimension_row sizes[] = {
    {"state_group", "n_groups|mamba_n_groups"},
    {"state", "state_size|d_state|mamba_state_size|mamba_d_state"},
    {"mamba_head", "mamba_n_heads"},
    {"inner", "mamba_d_ssm"},
    {0},
};

static void falcon_h1_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    static const char *const alone[] = {"key_multiplier",      "attention_in_multiplier", "attention_out_multiplier",
                                        "ssm_in_multiplier",   "ssm_out_multiplier",      "lm_head_multiplier",
                                        "embedding_multiplier"};
    static const char *const of_mlp[] = {"gate", "down"};
    const struct json *mlp = hparams_get(hparams, "mlp_multipliers"), *ssm = hparams_get(hparams, "ssm_multipliers");
    dimensions_set(dimensions, "states",
                   dimensions_get(dimensions, "state_group") * dimensions_get(dimensions, "state"));
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        set_factor(dimensions, alone[i], hparams_get(hparams, alone[i]));
    for (size_t i = 0; i < 2; i++)
        set_factor(dimensions, of_mlp[i], json_is(mlp, JSON_ARRAY) ? json_at(mlp, i) : NULL);
    for (size_t i = 0; i < N_PARTS; i++)
        set_factor(dimensions, part_factors[i], json_is(ssm, JSON_ARRAY) ? json_at(ssm, i) : NULL);
}

/* The weights include the model's multipliers already. */
static const struct config_row config_rows[] = {
    {"attention_in_multiplier", FROM_TEXT, .text = "1.0"},
    {"attention_out_multiplier", FROM_TEXT, .text = "1.0"},
    {"embedding_multiplier", FROM_TEXT, .text = "1.0"},
    {"key_multiplier", FROM_TEXT, .text = "1.0"},
    {"lm_head_multiplier", FROM_TEXT, .text = "1.0"},
    {"mlp_multipliers", FROM_TEXT, .text = "[1.0, 1.0]"},
    {"ssm_in_multiplier", FROM_TEXT, .text = "1.0"},
    {"ssm_multipliers", FROM_TEXT, .text = "[1.0, 1.0, 1.0, 1.0, 1.0]"},
    {"ssm_out_multiplier", FROM_TEXT, .text = "1.0"},
    {"mamba_n_heads", FROM_KEY, "ssm.time_step_rank"},
    {"mamba_d_head", FROM_QUOTIENT, "ssm.inner_size", "ssm.time_step_rank"},
    {"mamba_rms_norm", FROM_TENSOR, "blk.0.ssm_norm.weight"},
    {"mamba_norm_before_gate", FROM_TEXT, .text = "false"}, /* llama.cpp's order */
    {"mamba_conv_bias", FROM_TENSOR, "blk.0.ssm_conv1d.bias"},
    {"mamba_proj_bias", FROM_TENSOR, "blk.0.ssm_in.bias"},
    {"projectors_bias", FROM_TENSOR, "blk.0.ssm_out.bias"},
    {0},
};

const struct family falcon_h1_family = {
    .name = "falcon-h1",
    .summary = "Falcon-H1",
    .hf = FAMILY_NAMES({"FalconH1ForCausalLM"}),
    .tensors = {falcon_h1_tensors, mamba2_layer_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"FalconH1ForCausalLM", "falcon_h1", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, mlp_bias_rows, config_rows)}),
    .keys = {falcon_h1_keys},
    .vocabs = {&bpe_vocab},
    .dimensions = {sizes},
    .add_dimensions = falcon_h1_add_dimensions,
};
