/* PLaMo 2: layers of Mamba and of attention. conversion/plamo.py. */
#include "models/families/plamo/plamo2.h"
#include "models/families/layers.h"
#include "quant/blocks/f16.h"
#include "quant/views/convert.h"
#include "quant/views/unpack.h"

/* Adds a number, which is rounded to F16 for F16 tensors. */
static const struct view *add(struct arena *arena, enum direction direction, const struct view *view, float number)
{
    bool is_half = view->dtype == &f16_dtype;
    if (is_half)
        number = f16_to_f32(f16_from_f32(number));
    view = view_combine_number(arena, view, direction == FORWARD ? ADD : SUBTRACT, number);
    return view_convert(arena, view, is_half ? &f16_dtype : &f32_dtype);
}

static const struct view *add_fifth(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                    const struct view *view)
{
    return add(arena, direction, view, 0.2f);
}

static const struct view *add_root(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                   const struct view *view)
{
    return add(arena, direction, view, 0.08944271909999159f);
}

static const struct elementwise plus_fifth = {
    .forward_text = "x + 1/5",
    .backward_text = "x - 1/5",
    .apply = add_fifth,
    .exactness = "as that of x + 1",
};

static const struct elementwise plus_root_of_fifth = {
    .forward_text = "x + 1/5^1.5",
    .backward_text = "x - 1/5^1.5",
    .apply = add_root,
    .exactness = "as that of x + 1",
};

#define LAYER "model.layers.layers.{}."
#define MIXER LAYER "mixer."

const struct relation_row plamo2_tensors[] = {
    {"model.norm", "output_norm", .map = &plus_one},
    {LAYER "pre_mixer_norm", "blk.{}.attn_norm", .map = &plus_one},
    {LAYER "post_mixer_norm.weight", "blk.{}.post_attention_norm", .map = &plus_fifth},
    {LAYER "pre_mlp_norm", "blk.{}.ffn_norm", .map = &plus_one},
    {LAYER "post_mlp_norm.weight", "blk.{}.post_ffw_norm", .map = &plus_root_of_fifth},
    {LAYER "mlp.gate_up_proj", "blk.{}.ffn_up", "(gate + up) ...", "gate up"},
    {LAYER "mlp.down_proj", "blk.{}.ffn_down", .parallel = "column"},
    {MIXER "qkv_proj", "blk.{}.attn_qkv", "(head d + kv_head k + kv_head v) ...", "head kv_head"},
    {MIXER "o_proj", "blk.{}.attn_output", .parallel = "column"},
    {0},
};

static const struct relation_row tensors[] = {
    {MIXER "q_weight", "blk.{}.attn_q_norm.weight"},
    {MIXER "k_weight", "blk.{}.attn_k_norm.weight"},
    {MIXER "in_proj", "blk.{}.ssm_in", .parallel = "row"},
    {MIXER "conv1d.weight", "blk.{}.ssm_conv1d.weight", "c 1 k -> c k", "c"},
    {MIXER "bcdt_proj", "blk.{}.ssm_x", .parallel = "column"},
    {MIXER "dt_proj.weight", "blk.{}.ssm_dt.weight", .parallel = "row"},
    {MIXER "dt_bias", "blk.{}.ssm_dt.bias", .parallel = "row"},
    {MIXER "A_log", "blk.{}.ssm_a", .parallel = "row", .map = &minus_exp},
    {MIXER "D", "blk.{}.ssm_d", .parallel = "row"},
    {MIXER "out_proj", "blk.{}.ssm_out", .parallel = "column"},
    {MIXER "dt_norm_weight", "blk.{}.ssm_dt_norm"},
    {MIXER "B_norm_weight", "blk.{}.ssm_b_norm"},
    {MIXER "C_norm_weight", "blk.{}.ssm_c_norm"},
    {0},
};

static bool emit_heads(struct model_builder *builder, struct error *error)
{
    struct layers heads, kv_heads;
    double step, n_heads, n_kv_heads;
    if (json_is(hparams_get(builder->model->hparams, "mamba_enabled"), JSON_FALSE))
        return true;
    if (!layers_new(builder, &heads, error) || !layers_new(builder, &kv_heads, error) ||
        !builder_number(builder, "mamba_step", 2, &step, error) ||
        !builder_number(builder, "num_attention_heads", 32, &n_heads, error) ||
        !builder_number(builder, "num_key_value_heads", 4, &n_kv_heads, error))
        return false;
    if (!(step >= 1 && step <= INT32_MAX))
        return error_set(error, "config.json: mamba_step is not a number of layers");
    uint64_t period = (uint64_t)step, offset = period / 2;
    for (uint64_t i = 0; i < heads.n; i++) {
        bool has_attention = heads.n <= offset ? i == heads.n - 1 : i % period == offset;
        heads.values[i] = has_attention ? n_heads : 0;
        kv_heads.values[i] = has_attention ? n_kv_heads : 0;
    }
    return layers_set_i32(builder, "attention.head_count_kv", &kv_heads, error) &&
           layers_set_i32(builder, "attention.head_count", &heads, error);
}

static const struct key_row keys[] = {
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {.emit = emit_heads},
    {"context_length", GGUF_U32, OR_DEFAULT, "max_position_embeddings", 2048},
    {"embedding_length", GGUF_U32, OR_DEFAULT, "hidden_size", 4096},
    {"attention.key_length", GGUF_U32, OR_DEFAULT, "hidden_size_per_head", 128},
    {"attention.value_length", GGUF_U32, OR_DEFAULT, "hidden_size_per_head", 128},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, OR_DEFAULT, "rms_norm_eps", 1e-6},
    {"rope.freq_base", GGUF_F32, OR_DEFAULT, "rope.rope_theta", 10000},
    {"ssm.state_size", GGUF_U32, OR_DEFAULT, "mamba_d_state", 64},
    {"ssm.conv_kernel", GGUF_U32, OR_DEFAULT, "mamba_d_conv", 4},
    {"ssm.time_step_rank", GGUF_U32, OR_DEFAULT, "mamba_num_heads", 64},
    {"ssm.inner_size", GGUF_U32, OR_DEFAULT, "mamba_num_heads", 64, .by = "hidden_size_per_head", .otherwise = 128},
    {"ssm.group_count", GGUF_U32, ALWAYS, .value = 0},
    {"feed_forward_length", GGUF_U32, OR_DEFAULT, "intermediate_size", 13312},
    FILE_TYPE_KEY,
    {0},
};

const struct family plamo2_family = {
    .name = "plamo2",
    .summary = "PLaMo 2",
    .hf = FAMILY_NAMES({"Plamo2ForCausalLM"}, {"PLaMo2ForCausalLM"}),
    .tensors = {tensors, plamo2_tensors, decoder_tensors},
    .keys = {keys},
    .vocabs = {&plamo_vocab},
};
