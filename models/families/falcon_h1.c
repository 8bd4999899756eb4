/* Falcon-H1: layers with Mamba 2 and attention in parallel. conversion/falcon_h1.py.
 *
 * The model multiplies results by numbers of its configuration; a GGUF's weights include these multipliers. */
#include "models/families/linear_attention.h"
#include "quant/views/unpack.h"

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
static const struct relation_row tensors[] = {
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

static const struct key_row keys[] = {
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

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
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
    .tensors = {tensors, mamba2_layer_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"FalconH1ForCausalLM", "falcon_h1", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, mlp_bias_rows, config_rows)}),
    .keys = {keys},
    .vocabs = {&bpe_vocab},
    .dimensions = {sizes},
    .add_dimensions = add_dimensions,
};
