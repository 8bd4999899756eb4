/* Maple: Qwen 3 MoE with windows, and no rope in the layers without one. conversion/maple.py. */
#include "models/families/layers.h"
#include "models/families/qwen/qwen.h"

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

static const struct config_row config_rows[] = {
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
    .forms = CONFIG_FORMS(
        {"MapleForCausalLM", "maple", NULL, CONFIG_TABLES(silu_rows, num_experts_rows, config_rows), OWN_CLASS_NOTE}),
    .keys = {base_keys,
             KEYS({"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
                  {"rope.dimension_count", GGUF_U32, .compute = compute_rotary},
                  {"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"}, {.emit = emit_listed_windows},
                  {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"}, {.emit = emit_limits})},
    .vocabs = {&bpe_vocab},
    .adjust = check,
};
