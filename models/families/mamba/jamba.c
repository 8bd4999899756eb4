/* Jamba: layers of Mamba and of attention, some with experts. conversion/jamba.py. */
#include "base/text.h"
#include "models/families/layers.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const struct relation_row tensors[] = {
    {"model.final_layernorm", "output_norm"},
    {"model.layers.{}.pre_ff_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.mamba.in_proj", "blk.{}.ssm_in", "(half row) ...", "row"},
    {"model.layers.{}.mamba.conv1d.weight", "blk.{}.ssm_conv1d.weight", "c 1 k -> c k", "c"},
    {"model.layers.{}.mamba.conv1d.bias", "blk.{}.ssm_conv1d.bias", .parallel = "row"},
    {"model.layers.{}.mamba.x_proj", "blk.{}.ssm_x", .parallel = "column"},
    {"model.layers.{}.mamba.dt_proj", "blk.{}.ssm_dt", .parallel = "row"},
    {"model.layers.{}.mamba.A_log", "blk.{}.ssm_a", .parallel = "row", .map = &minus_exp},
    {"model.layers.{}.mamba.D", "blk.{}.ssm_d", .parallel = "row"},
    {"model.layers.{}.mamba.out_proj", "blk.{}.ssm_out", .parallel = "column"},
    {"model.layers.{}.mamba.b_layernorm", "blk.{}.ssm_b_norm"},
    {"model.layers.{}.mamba.c_layernorm", "blk.{}.ssm_c_norm"},
    {"model.layers.{}.mamba.dt_layernorm", "blk.{}.ssm_dt_norm"},
    {"model.layers.{}.feed_forward.router", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.feed_forward.experts.{expert}.down_proj", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"model.layers.{}.feed_forward.experts.{expert}.gate_proj", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {"model.layers.{}.feed_forward.experts.{expert}.up_proj", "blk.{}.ffn_up_exps", .parallel = "row"},
    {"model.layers.{}.feed_forward.down_proj", "blk.{}.ffn_down", .parallel = "column"},
    {"model.layers.{}.feed_forward.gate_proj", "blk.{}.ffn_gate", .parallel = "row"},
    {"model.layers.{}.feed_forward.up_proj", "blk.{}.ffn_up", .parallel = "row"},
    {0},
};

/* Sets the key heads of the layers with attention, one in each period. */
static bool emit_kv_heads(struct model_builder *builder, struct error *error)
{
    struct layers layers;
    uint64_t period, offset;
    const struct hparams *hparams = builder->model->hparams;
    if (!layers_new(builder, &layers, error) ||
        !hparams_count(hparams, "attn_layer_period", 1, UINT32_MAX, &period, error) ||
        !hparams_count(hparams, "attn_layer_offset", 0, UINT32_MAX, &offset, error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = i % period == offset;
    return layers_set_kv_heads(builder, &layers, error);
}

/* Computes the rank: without a number, or with "auto", a sixteenth of the width, rounded up. */
static bool compute_rank(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double width;
    uint64_t rank;
    if (json_u64(hparams_get(builder->model->hparams, "mamba_dt_rank"), &rank) && rank > 0) {
        *ret_value = (double)rank;
        return true;
    }
    if (!builder_number(builder, "hidden_size|mamba_d_model", 0, &width, error))
        return false;
    *ret_value = ceil(width / 16);
    return true;
}

static const struct key_row keys[] = {
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"context_length", GGUF_U32, REQUIRED, "max_position_embeddings|n_ctx"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size|mamba_d_model"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads"},
    {.emit = emit_kv_heads},
    {"ssm.conv_kernel", GGUF_U32, OR_DEFAULT, "mamba_d_conv", 4},
    {"ssm.inner_size", GGUF_U32, REQUIRED, "hidden_size|mamba_d_model", .by = "mamba_expand", .otherwise = 2},
    {"ssm.state_size", GGUF_U32, OR_DEFAULT, "mamba_d_state", 16},
    {"ssm.time_step_rank", GGUF_U32, .compute = compute_rank},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_epsilon|rms_norm_eps", 1e-6},
    {"expert_count", GGUF_U32, REQUIRED, "num_experts|num_local_experts"},
    {"expert_used_count", GGUF_U32, REQUIRED, "num_experts_per_tok|num_experts_per_token"},
    FILE_TYPE_KEY,
    {0},
};

/* Finds the layer in a name and returns the rest of the name; NULL: the name has no layer. */
static const char *after_layer(const char *name, uint64_t *ret_layer)
{
    static const char layer[] = "model.layers.";
    uint64_t numbers[PATTERN_NUMBERS];
    if (!text_starts_with(name, layer))
        return NULL;
    const char *number = name + sizeof layer - 1;
    size_t digits = strspn(number, "0123456789");
    if (number[digits] != '.' || !pattern_match("{}", number, digits, numbers))
        return NULL;
    *ret_layer = numbers[0];
    return number + digits + 1;
}

/* Renames Mini-Jamba's "moe."; drops "experts.0." in layers without experts, where some checkpoints have it. */
static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char mini[] = "moe.", expert[] = "experts.0.", own[] = "feed_forward.";
    uint64_t layer, period = dimensions_get(dimensions, "expert_period"),
                    offset = dimensions_get(dimensions, "expert_offset");
    const char *rest = direction == FORWARD ? after_layer(name, &layer) : NULL;
    bool is_mini = rest != NULL && text_starts_with(rest, mini);
    if (rest == NULL || (!is_mini && !text_starts_with(rest, own)))
        return name;
    rest += is_mini ? sizeof mini - 1 : sizeof own - 1;
    bool is_alone = period != 0 && text_starts_with(rest, expert) && (layer < offset || (layer - offset) % period != 0);
    return arena_printf(arena, "model.layers.%" PRIu64 ".%s%s", layer, own, is_alone ? rest + sizeof expert - 1 : rest);
}

/* The kernels need a GPU; the class works anywhere without them. */
static const struct config_row config_rows[] = {
    {"use_mamba_kernels", FROM_TEXT, .text = "false"},
    {"num_key_value_heads", FROM_MOST, "attention.head_count_kv"},
    {"attn_layer_period", FROM_PERIOD, "attention.head_count_kv"},
    {"attn_layer_offset", FROM_OFFSET, "attention.head_count_kv"},
    {"expert_layer_period", FROM_PERIOD, "blk.{}.ffn_gate_inp.weight"},
    {"expert_layer_offset", FROM_OFFSET, "blk.{}.ffn_gate_inp.weight"},
    {"mamba_expand", FROM_QUOTIENT, "ssm.inner_size", "embedding_length"},
    {"mamba_dt_rank", FROM_KEY, "ssm.time_step_rank"},
    {"mamba_conv_bias", FROM_TENSOR, "blk.0.ssm_conv1d.bias"},
    {"mamba_proj_bias", FROM_TENSOR, "blk.0.ssm_in.bias"},
    {0},
};

const struct family jamba_family = {
    .name = "jamba",
    .summary = "Jamba",
    .hf = FAMILY_NAMES({"JambaForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"JambaForCausalLM", "jamba", NULL, CONFIG_TABLES(silu_rows, config_rows)}),
    .keys = {keys},
    .vocabs = {&spm_vocab, &jamba_hf_vocab},
    .dimensions = {DIMENSIONS({"expert_period", "expert_layer_period"}, {"expert_offset", "expert_layer_offset"})},
    .rename = rename_tensor,
};
