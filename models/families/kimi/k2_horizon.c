/* K2 Horizon: Qwen 3 with gates, norms over all heads, and experts, also for values. conversion/k2_horizon.py. */
#include "models/families/layers.h"
#include "models/families/qwen/qwen.h"

#define ATTENTION "model.layers.{}.self_attn."
#define SHARED    "model.layers.{}.mlp.shared_experts."

static const struct relation_row tensors[] = {
    {ATTENTION "attn_gate_proj", "blk.{}.attn_gate", .parallel = "row"},
    {ATTENTION "v_router", "blk.{}.attn_v_gate"},
    {ATTENTION "v_experts.{v_expert}", "blk.{}.attn_v_exps", .parallel = "row"},
    {"model.layers.{}.mlp.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.mlp.gate.bias", "blk.{}.exp_probs_b.bias"},
    {SHARED "down_proj", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {SHARED "gate_proj", "blk.{}.ffn_gate_shexp", .parallel = "row"},
    {SHARED "up_proj", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {0},
};

/* Computes the number of leading dense layers: the run 0, 1, 2 ... of mlp_only_layers, if no key has it. */
static bool compute_dense_layers(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *told = hparams_get(hparams, "num_dense_layers"), *list = hparams_get(hparams, "mlp_only_layers");
    struct layers layers;
    if (told != NULL && json_type(told) != JSON_NULL)
        return builder_number(builder, "num_dense_layers", 0, ret_value, error);
    *ret_value = 0;
    if (json_count(list) == 0)
        return true;
    if (!layers_new(builder, &layers, error))
        return false;
    for (const struct json *item = json_first(list); item != NULL; item = json_next(item)) {
        uint64_t i;
        if (json_u64(item, &i) && i < layers.n)
            layers.values[i] = 1;
    }
    for (uint64_t i = 0; i < layers.n && layers.values[i] != 0; i++)
        *ret_value += 1;
    return true;
}

static const struct key_row expert_keys[] = {
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"leading_dense_block_count", GGUF_U32, .compute = compute_dense_layers},
    {"moe_every_n_layers", GGUF_U32, OR_DEFAULT, "decoder_sparse_step", 1},
    {"expert_shared_count", GGUF_U32, OR_DEFAULT, "num_shared_experts", 0},
    {"expert_weights_norm", GGUF_BOOL, OR_DEFAULT, "norm_topk_prob", 0},
    {0},
};

static const struct key_row shared_keys[] = {
    {"expert_shared_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size", .by = "num_shared_experts"},
    {0}};

static const struct key_row scale_keys[] = {{"expert_weights_scale", GGUF_F32, IF_PRESENT, "router_scaling_factor"},
                                            {0}};

static bool emit_experts(struct model_builder *builder, struct error *error)
{
    double n, n_shared;
    if (!builder_number(builder, "num_experts", 0, &n, error) ||
        !builder_number(builder, "num_shared_experts", 0, &n_shared, error))
        return false;
    if (!(n > 0))
        return true;
    return builder_emit(builder, expert_keys, error) &&
           (!(n_shared > 0) || builder_emit(builder, shared_keys, error)) && builder_emit(builder, scale_keys, error);
}

static const struct key_row value_keys[] = {
    {"attention.value_expert_count", GGUF_U32, REQUIRED, "mova_num_experts"},
    {"attention.value_expert_used_count", GGUF_U32, REQUIRED, "mova_num_experts_per_tok"},
    {0},
};

static bool emit_value_experts(struct model_builder *builder, struct error *error)
{
    double n, n_used;
    if (!builder_number(builder, "mova_num_experts", 0, &n, error) ||
        !builder_number(builder, "mova_num_experts_per_tok", 0, &n_used, error))
        return false;
    if (!(n > 0 && n_used > 0))
        return true;
    if (n_used > n)
        return error_set(error, "config.json: mova_num_experts_per_tok is %g, but there are %g experts for values",
                         n_used, n);
    return builder_emit(builder, value_keys, error);
}

static bool check_gate(struct model_builder *builder, struct error *error)
{
    const struct json *gate = hparams_get(builder->model->hparams, "attention_gate_func");
    if (gate == NULL || json_type(gate) == JSON_NULL || json_string_is(gate, "softplus"))
        return true;
    return error_set(error, "config.json: attention_gate_func is not 'softplus', the only one that llama.cpp computes");
}

static const struct config_row config_rows[] = {
    {"attention_gate_func", FROM_TEXT, .text = "'softplus'"},
    {"num_shared_experts", FROM_KEY, "expert_shared_count"},
    {"moe_intermediate_size", FROM_KEY, "expert_feed_forward_length"},
    {"decoder_sparse_step", FROM_KEY, "moe_every_n_layers"},
    {"norm_topk_prob", FROM_KEY, "expert_weights_norm"},
    {"router_scaling_factor", FROM_KEY, "expert_weights_scale"},
    {"mova_num_experts", FROM_KEY, "attention.value_expert_count"},
    {"mova_num_experts_per_tok", FROM_KEY, "attention.value_expert_used_count"},
    {0},
};

/* Layers that no experts replace. */
static const struct config_row dense_layer_rows[] = {
    {"mlp_only_layers", FROM_LISTED, "blk.{}.ffn_gate.weight"},
    {0},
};

const struct family k2_horizon_family = {
    .name = "k2-horizon",
    .summary = "K2 Horizon",
    .since = 11549,
    .hf = FAMILY_NAMES({"K2HorizonForCausalLM"}),
    .tensors = {tensors, qk_norm_tensors, expert_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"K2HorizonForCausalLM", "k2_horizon", "key:expert_count",
         CONFIG_TABLES(silu_rows, num_experts_rows, config_rows, dense_layer_rows), OWN_CLASS_NOTE},
        {"K2HorizonForCausalLM", "k2_horizon", NULL, CONFIG_TABLES(silu_rows, config_rows), OWN_CLASS_NOTE}),
    .keys = {base_keys, KEYS({"attention.group_norm_groups", GGUF_U32, OR_DEFAULT, "layernorm_num_groups", 1},
                             {"rope.dimension_count", GGUF_U32, IF_PRESENT, "rope_head_dim"}, {.emit = emit_experts},
                             {.emit = emit_value_experts})},
    .dimensions = {DIMENSIONS({"v_expert", "mova_num_experts"})},
    .vocabs = {&bpe_vocab},
    .adjust = check_gate,
};
