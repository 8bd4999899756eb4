/* Spark X2.5: windows in most layers, whose rope is another, and a gate for each head. conversion/spark2_5.py. */
#include "models/families/layers.h"

#include "text/json_write.h"

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

/* Returns one kind of layers' rope: {"partial_rotary_factor": 0.5, ...}; NULL: a key is missing. */
static const char *make_rope_of(const struct config_material *material, const char *kind, const char *base_key,
                                const char *size_key)
{
    char digits[2][JSON_FLOAT_TEXT];
    double base, size, head;
    const char *name = arena_printf(material->arena, "%s.%s", material->architecture, base_key);
    if (!gguf_get_f64(material->kvs, name, &base) || !config_number_of_layer(material, size_key, 0, &size) ||
        !config_number_of_layer(material, "attention.key_length", 0, &head) || !(head > 0))
        return NULL;
    return arena_printf(material->arena,
                        "    \"%s\": {\n      \"partial_rotary_factor\": %s,\n      \"rope_theta\": %s,\n"
                        "      \"rope_type\": \"default\"\n    }",
                        kind, json_f64_text(size / head, digits[0]), json_f32_text((float)base, digits[1]));
}

static const char *make_ropes(const struct config_material *material)
{
    const char *full = make_rope_of(material, "full_attention", "rope.freq_base", "rope.dimension_count"),
               *sliding = make_rope_of(material, "sliding_attention", "rope.freq_base_swa", "rope.dimension_count_swa");
    return full != NULL && sliding != NULL ? arena_printf(material->arena, "{\n%s,\n%s\n  }", full, sliding) : NULL;
}

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'gelu'"},
    {"gate_attn_act_mode", FROM_TEXT, .text = "'sigmoid'"},
    {"headwise_attn_output_gate", FROM_TEXT, .text = "true"},
    {"layer_types", FROM_LAYERS, "attention.sliding_window_pattern", "'sliding_attention'|'full_attention'"},
    {"rope_parameters", .make = make_ropes},
    {"rope_theta", FROM_NOWHERE},
    {0},
};

const struct family spark2_5_family = {
    .name = "spark2_5",
    .summary = "Spark X2.5",
    .since = 10830,
    .hf = FAMILY_NAMES({"Spark2_5ForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Spark2_5ForCausalLM", "spark2_5", NULL, CONFIG_TABLES(config_rows), OWN_CLASS_NOTE}),
    .keys = {base_keys,
             KEYS({"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
                  {"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"}, {.emit = emit_listed_windows},
                  {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_full},
                  {"rope.dimension_count_swa", GGUF_U32, .compute = compute_rotary_sliding})},
    .dimensions = {qkv_dimensions},
    .vocabs = {&bpe_vocab},
    .adjust = check,
};
