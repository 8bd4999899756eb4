/* Grok 1 and 2. conversion/grok.py. */
#include "models/families/shared.h"

#include <math.h>

#define LAYER "transformer.decoder_layer.{}."

static const struct relation_row first_tensors[] = {
    {"transformer.in_out_embed", "token_embd", .parallel = "row"},
    {"transformer.rms_norm", "output_norm"},
    {LAYER "rms_norm", "blk.{}.attn_norm"},
    {LAYER "multi_head_attention.query", "blk.{}.attn_q", "(head d) ...", "head"},
    {LAYER "multi_head_attention.key", "blk.{}.attn_k", "(kv_head d) ...", "kv_head"},
    {LAYER "multi_head_attention.value", "blk.{}.attn_v", "(kv_head d) ...", "kv_head"},
    {LAYER "multi_head_attention.linear", "blk.{}.attn_output", .parallel = "column"},
    {LAYER "rms_norm_1", "blk.{}.attn_output_norm"},
    {LAYER "rms_norm_2", "blk.{}.ffn_norm"},
    {LAYER "rms_norm_3", "blk.{}.layer_output_norm"},
    {LAYER "router", "blk.{}.ffn_gate_inp"},
    {LAYER "moe.{expert}.linear", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {LAYER "moe.{expert}.linear_1", "blk.{}.ffn_down_exps", .parallel = "column"},
    {LAYER "moe.{expert}.linear_v", "blk.{}.ffn_up_exps", .parallel = "row"},
    {0},
};

/* Sets the rope's scaling; "original" also means YaRN. */
static bool emit_rope_scaling(struct model_builder *builder, struct error *error)
{
    static const struct key_row keys[] = {
        {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "yarn"},
        {"rope.scaling.factor", GGUF_F32, REQUIRED, "scaling_factor"},
        {"rope.scaling.original_context_length", GGUF_U32, REQUIRED, "original_max_position_embeddings"},
        {"rope.scaling.yarn_ext_factor", GGUF_F32, REQUIRED, "extrapolation_factor"},
        {"rope.scaling.yarn_attn_factor", GGUF_F32, REQUIRED, "attn_factor"},
        {"rope.scaling.yarn_beta_fast", GGUF_F32, REQUIRED, "beta_fast"},
        {"rope.scaling.yarn_beta_slow", GGUF_F32, REQUIRED, "beta_slow"},
        {0},
    };
    const struct json *type = hparams_get(builder->model->hparams, "rope_type");
    bool is_yarn = json_string_is(type, "yarn") || json_string_is(type, "original");
    return !is_yarn || builder_emit(builder, keys, error);
}

static bool compute_output_scale(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double head_dim;
    if (!builder_number(builder, "attn_output_multiplier", NAN, ret_value, error))
        return false;
    if (!isnan(*ret_value))
        return true;
    if (!compute_head_dim(builder, &head_dim, error))
        return false;
    *ret_value = pow(head_dim, -0.5);
    return true;
}

static const struct key_row keys[] = {
    {"attn_logit_softcapping", GGUF_F32, OR_DEFAULT, "attn_logit_softcapping", .value = 30},
    {"router_logit_softcapping", GGUF_F32, OR_DEFAULT, "router_logit_softcapping", .value = 30},
    {"final_logit_softcapping", GGUF_F32, IF_TRUE, "final_logit_softcapping"},
    {"expert_feed_forward_length", GGUF_U32, IF_PRESENT, "moe_intermediate_size"},
    {.emit = emit_rope_scaling},
    {"attention.temperature_length", GGUF_U32, IF_TRUE, "attn_temperature_len"},
    {"attention.output_scale", GGUF_F32, .compute = compute_output_scale},
    {"embedding_scale", GGUF_F32, REQUIRED, "embedding_multiplier_scale"},
    {"logit_scale", GGUF_F32, REQUIRED, "output_multiplier_scale"},
    {0},
};

const struct family grok_family = {
    .name = "grok",
    .summary = "Grok 1 and 2",
    .hf = FAMILY_NAMES({"GrokForCausalLM"}, {"Grok1ForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.pre_attn_norm", "blk.{}.attn_norm"},
                        {"model.layers.{}.post_attn_norm", "blk.{}.attn_output_norm"},
                        {"model.layers.{}.pre_moe_norm", "blk.{}.ffn_norm"},
                        {"model.layers.{}.post_moe_norm", "blk.{}.post_ffw_norm"}),
                sparse_moe_tensors, decoder_tensors, first_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
};
