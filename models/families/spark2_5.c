/* Spark X2.5: windows in most layers, whose rope is another, and a gate for each head. conversion/spark2_5.py. */
#include "models/families/layers.h"

#include <math.h>

static const struct relation_row tensors[] = {
    {"model.layers.{}.self_attn.q_k_v_proj.weight", "blk.{}.attn_qkv.weight",
     "(query head d + key kv_head d + value kv_head d) c", "head kv_head"},
    {"model.layers.{}.self_attn.g_proj", "blk.{}.attn_gate", "head c", "head"},
    {0},
};

static bool check_layers(const struct model_builder *builder, struct error *error)
{
    const struct json *types = hparams_get(builder->model->hparams, "layer_types");
    if (json_count(types) != builder->dimensions.n_layers)
        return error_set(error, "config.json: layer_types has %zu layers, but num_hidden_layers is %llu",
                         json_count(types), (unsigned long long)builder->dimensions.n_layers);
    for (const struct json *type = json_first(types); type != NULL; type = json_next(type))
        if (!json_string_is(type, "sliding_attention") && !json_string_is(type, "full_attention"))
            return error_set(error,
                             "config.json: layer_types has '%.40s'; known are sliding_attention and "
                             "full_attention",
                             json_string(type, NULL) != NULL ? json_string(type, NULL) : "?");
    return true;
}

static bool check(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    if (!json_string_is(hparams_get(hparams, "gate_attn_act_mode"), "sigmoid") ||
        !json_bool(hparams_get(hparams, "headwise_attn_output_gate"), false))
        return error_set(error, "config.json: gate_attn_act_mode is not 'sigmoid', or headwise_attn_output_gate is not "
                                "true: other gates are not supported");
    if (!json_string_is(hparams_get(hparams, "hidden_act"), "gelu"))
        return error_set(error, "config.json: hidden_act is not 'gelu': other activations are not supported");
    return check_layers(builder, error);
}

static bool compute_rotary(const struct model_builder *builder, const struct json *share, double *ret_value,
                           struct error *error)
{
    double factor;
    if (!json_double(share, &factor))
        return error_set(error, "config.json: rope_parameters lack a partial_rotary_factor");
    if (!builder_number(builder, "head_dim", NAN, ret_value, error) || isnan(*ret_value))
        return error_set(error, "config.json: head_dim is missing, or not a number");
    *ret_value = trunc(*ret_value * factor);
    return true;
}

static bool compute_rotary_full(const struct model_builder *builder, double *ret_value, struct error *error)
{
    return compute_rotary(builder, hparams_rope(builder->model->hparams, "partial_rotary_factor"), ret_value, error);
}

static bool compute_rotary_sliding(const struct model_builder *builder, double *ret_value, struct error *error)
{
    return compute_rotary(builder, hparams_rope_sliding(builder->model->hparams, "partial_rotary_factor"), ret_value,
                          error);
}

const struct family spark2_5_family = {
    .name = "spark2_5",
    .summary = "Spark X2.5",
    .since = 10830,
    .hf = FAMILY_NAMES({"Spark2_5ForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .keys = {base_keys,
             KEYS({"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
                  {"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"}, {.emit = emit_listed_windows},
                  {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_full},
                  {"rope.dimension_count_swa", GGUF_U32, .compute = compute_rotary_sliding})},
    .dimensions = {qkv_dimensions},
    .vocabs = {&bpe_vocab},
    .adjust = check,
};
