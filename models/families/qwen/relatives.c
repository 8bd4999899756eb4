/* Families that differ from Qwen 2 and 3 in a few tensors and keys. */
#include "models/families/layers.h"
#include "models/families/qwen/qwen.h"
#include "models/families/shared.h"

/* Dream, a diffusion language model: Qwen 2 with bidirectional attention. conversion/dream.py. */

const struct family dream_family = {
    .name = "dream",
    .summary = "Dream",
    .hf = FAMILY_NAMES({"DreamModel"}),
    .tensors = {decoder_tensors},
    .keys = {base_keys, KEYS({.emit = emit_pooling_type}, {"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
                             {".tokenizer.ggml.mask_token_id", GGUF_U32, IF_PRESENT, "mask_token_id"})},
    .vocabs = {&spm_vocab, &plain_bpe_vocab},
};

/* Maincoder. conversion/maincoder.py. */

const struct family maincoder_family = {
    .name = "maincoder",
    .summary = "Maincoder",
    .hf = FAMILY_NAMES({"MaincoderForCausalLM"}),
    .tensors = {qk_norm_tensors, decoder_tensors},
    .keys = {base_keys, KEYS({"rope.dimension_count", GGUF_U32, IF_PRESENT, "head_dim"})},
    .vocabs = {&bpe_vocab},
};

/* RND1, a diffusion language model: Qwen 3 with experts and bidirectional attention. conversion/qwen.py. */

const struct family rnd1_family = {
    .name = "rnd1",
    .summary = "RND1",
    .hf = FAMILY_NAMES({"RND1"}),
    .tensors = {qk_norm_tensors, qwen_moe_tensors, decoder_tensors},
    .keys = {base_keys, moe_keys,
             KEYS({"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
                  {".tokenizer.ggml.mask_token_id", GGUF_U32, IF_PRESENT, "mask_token_id"})},
    .vocabs = {&bpe_vocab},
};

/* GroveMoE: Qwen 3 with experts; each two experts share a smaller one in parallel. conversion/grovemoe.py. */

enum { EXPERTS_PER_GROUP = 2 };

static const struct relation_row grovemoe_tensors[] = {
    {"model.layers.{}.mlp.gate.expert_bias", NULL},
    {"model.layers.{}.mlp.expert_bias", NULL},
    {"model.layers.{}.mlp.chunk_experts.{group}.down_proj", "blk.{}.ffn_down_chexps", .parallel = "column"},
    {"model.layers.{}.mlp.chunk_experts.{group}.gate_proj", "blk.{}.ffn_gate_chexps", .parallel = "row"},
    {"model.layers.{}.mlp.chunk_experts.{group}.up_proj", "blk.{}.ffn_up_chexps", .parallel = "row"},
    {0},
};

/* The converter uses the size of a head as the width of these experts. */
static const struct key_row keys[] = {
    {"expert_feed_forward_length", GGUF_U32, IF_PRESENT, "moe_intermediate_size"},
    {"expert_chunk_feed_forward_length", GGUF_U32, ALWAYS, .value = 128},
    {"expert_chunk_feed_forward_length", GGUF_U32, IF_TRUE, "head_dim"},
    {"experts_per_group", GGUF_U32, ALWAYS, .value = EXPERTS_PER_GROUP},
    {"expert_group_scale", GGUF_F32, ALWAYS, .value = 0.05},
    {0},
};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    dimensions_set(dimensions, "group", dimensions_get(dimensions, "expert") / EXPERTS_PER_GROUP);
}

const struct family grovemoe_family = {
    .name = "grovemoe",
    .summary = "GroveMoE",
    .hf = FAMILY_NAMES({"GroveMoeForCausalLM"}, {"modeling_grove_moe.GroveMoeForCausalLM"}),
    .tensors = {grovemoe_tensors, qk_norm_tensors, qwen_moe_tensors, decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
    .add_dimensions = add_dimensions,
};

/* Maple: Qwen 3 MoE with windows, and no rope in the layers without one. conversion/maple.py. */

static const double limit_of_gates = 7; /* a constant of the model's own code */

static bool emit_limits(struct model_builder *builder, struct error *error)
{
    return layers_set_all(builder, "swiglu_clamp_exp", GGUF_F32, limit_of_gates, error);
}

static bool compute_rotary(const struct model_builder *builder, double *ret_value, struct error *error)
{
    return rotary_of_head_dim(builder, 1, ret_value, error);
}

static bool check(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    double n_shared;
    if (!builder_number(builder, "num_shared_experts", 0, &n_shared, error))
        return false;
    if (!json_string_is(hparams_get(hparams, "hidden_act"), "silu") || n_shared != 0 ||
        !json_bool(hparams_get(hparams, "norm_topk_prob"), true) ||
        !json_bool(hparams_get(hparams, "nope_on_global_attention"), false))
        return error_set(error, "config.json: hidden_act must be 'silu', num_shared_experts 0, norm_topk_prob and "
                                "nope_on_global_attention true; other models of this class are not supported");
    return true;
}

static const struct config_row maple_config_rows[] = {
    {"layer_types", FROM_LAYERS, "attention.sliding_window_pattern", "'sliding_attention'|'full_attention'"},
    {"num_shared_experts", FROM_TEXT, .text = "0"},
    {"norm_topk_prob", FROM_TEXT, .text = "true"},
    {"nope_on_global_attention", FROM_TEXT, .text = "true"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length"},
    {0},
};

const struct family maple_family = {
    .name = "maple",
    .summary = "Maple",
    .since = 11138,
    .hf = FAMILY_NAMES({"MapleForCausalLM"}),
    .tensors = {qk_norm_tensors, qwen_moe_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"MapleForCausalLM", "maple", NULL,
                           CONFIG_TABLES(silu_rows, num_experts_rows, maple_config_rows), OWN_CLASS_NOTE}),
    .keys = {base_keys,
             KEYS({"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
                  {"rope.dimension_count", GGUF_U32, .compute = compute_rotary},
                  {"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"}, {.emit = emit_listed_windows},
                  {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"}, {.emit = emit_limits})},
    .vocabs = {&bpe_vocab},
    .adjust = check,
};

/* Mellum 2, of JetBrains: Qwen 3 with experts, and some layers with a window. conversion/mellum.py. */

static bool emit_window(struct model_builder *builder, struct error *error)
{
    static const struct key_row window[] = {{"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"}, {0}};
    const struct json *used = hparams_get(builder->model->hparams, "use_sliding_window"),
                      *size = hparams_get(builder->model->hparams, "sliding_window"),
                      *types = hparams_get(builder->model->hparams, "layer_types");
    bool is_used = used == NULL || json_is(used, JSON_NULL) || json_is(used, JSON_TRUE);
    if (!is_used || size == NULL || json_is(size, JSON_NULL))
        return true;
    if (!json_is(types, JSON_ARRAY))
        return error_set(error, "config.json: there is a sliding_window, and no layer_types");
    return builder_emit(builder, window, error) && emit_listed_windows(builder, error);
}

const struct family mellum_family = {
    .name = "mellum",
    .summary = "Mellum 2",
    .hf = FAMILY_NAMES({"MellumForCausalLM"}),
    .tensors = {qk_norm_tensors, qwen_moe_tensors, decoder_tensors},
    .keys = {base_keys, KEYS({"expert_feed_forward_length", GGUF_U32, IF_PRESENT, "moe_intermediate_size"},
                             {.emit = emit_window})},
    .vocabs = {&bpe_vocab},
};

/* K2 Horizon: Qwen 3 with gates, norms over all heads, and experts, also for values. conversion/k2_horizon.py. */

#define ATTENTION "model.layers.{}.self_attn."
#define SHARED    "model.layers.{}.mlp.shared_experts."

static const struct relation_row k2_horizon_tensors[] = {
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

static const struct config_row k2_horizon_config_rows[] = {
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
    .tensors = {k2_horizon_tensors, qk_norm_tensors, expert_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"K2HorizonForCausalLM", "k2_horizon", "key:expert_count",
         CONFIG_TABLES(silu_rows, num_experts_rows, k2_horizon_config_rows, dense_layer_rows), OWN_CLASS_NOTE},
        {"K2HorizonForCausalLM", "k2_horizon", NULL, CONFIG_TABLES(silu_rows, k2_horizon_config_rows), OWN_CLASS_NOTE}),
    .keys = {base_keys, KEYS({"attention.group_norm_groups", GGUF_U32, OR_DEFAULT, "layernorm_num_groups", 1},
                             {"rope.dimension_count", GGUF_U32, IF_PRESENT, "rope_head_dim"}, {.emit = emit_experts},
                             {.emit = emit_value_experts})},
    .dimensions = {DIMENSIONS({"v_expert", "mova_num_experts"})},
    .vocabs = {&bpe_vocab},
    .adjust = check_gate,
};
