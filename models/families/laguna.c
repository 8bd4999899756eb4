/* Laguna, of poolside: gates on the results of attention, layers with a window, and experts. conversion/laguna.py. */
#include "models/families/layers.h"
#include "models/families/qwen/qwen.h"
#include "models/tokenizers/tokenizer_files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct relation_row tensors[] = {
    {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", "(h d) ...", "h"},
    {"model.layers.{}.self_attn.g_proj", "blk.{}.attn_gate", .parallel = "row"},
    {"model.layers.{}.mlp.experts.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.mlp.shared_expert.down_proj", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {"model.layers.{}.mlp.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp", .parallel = "row"},
    {"model.layers.{}.mlp.shared_expert.up_proj", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {0},
};

/* Returns the width of a layer's gate: its heads, or their outputs. NULL if neither is declared. */
static const char *gate_kind(const struct json *value)
{
    if (json_string_is(value, "per-element") || json_string_is(value, "per_element"))
        return "per-element";
    if (json_string_is(value, "per-head") || json_string_is(value, "per_head"))
        return "per-head";
    return NULL;
}

/* Checks the gates of gating, or of gating_types layer by layer. Engines read only gating, so the converter requires it
 * to be wide if any gate is. */
static bool check_gates(const struct model_builder *builder, struct error *error)
{
    const struct json *gating = hparams_get(builder->model->hparams, "gating"),
                      *types = hparams_get(builder->model->hparams, "gating_types"), *item = json_first(types);
    const char *kind = gate_kind(gating);
    bool is_wide = kind != NULL && strcmp(kind, "per-element") == 0;
    if (json_count(types) == 0)
        return kind != NULL || json_is(gating, JSON_TRUE) ||
               error_set(error, "config.json: gating is neither 'per-element' nor 'per-head'");
    if (json_count(types) != builder->dimensions.n_layers)
        return error_set(error, "config.json: gating_types has %zu layers, not %llu", (size_t)json_count(types),
                         (unsigned long long)builder->dimensions.n_layers);
    for (; item != NULL; item = json_next(item)) {
        const char *of_layer = gate_kind(item);
        if (of_layer == NULL)
            return error_set(error, "config.json: gating_types has what is neither 'per_element' nor 'per_head'");
        if (strcmp(of_layer, "per-element") == 0 && !is_wide)
            return error_set(error, "config.json: gating_types has 'per_element', and gating is not 'per-element'");
    }
    return true;
}

static bool emit_heads(struct model_builder *builder, struct error *error)
{
    const struct json *listed = hparams_get(builder->model->hparams, "num_attention_heads_per_layer");
    struct layers heads;
    if (!check_gates(builder, error) || !layers_new(builder, &heads, error))
        return false;
    if (json_count(listed) != 0 && json_count(listed) != heads.n)
        return error_set(error, "config.json: num_attention_heads_per_layer has %zu layers, not %llu",
                         (size_t)json_count(listed), (unsigned long long)heads.n);
    for (uint64_t i = 0; i < heads.n; i++)
        heads.values[i] = (double)dimensions_get(&builder->dimensions, "head");
    layers_fill(&heads, listed);
    return layers_set_i32(builder, "attention.head_count", &heads, error);
}

static bool compute_dense_layers(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct json *types = hparams_get(builder->model->hparams, "mlp_layer_types"), *item = json_first(types);
    *ret_value = 0;
    for (; item != NULL && json_string_is(item, "dense"); item = json_next(item))
        *ret_value += 1;
    return json_is(types, JSON_ARRAY) || error_set(error, "config.json: mlp_layer_types is missing");
}

/* Sets how many dimensions of a head the rope turns, for layers with their own parameters. */
static bool set_rotary(struct model_builder *builder, const char *key, const struct json *share, struct error *error)
{
    double head_dim, factor = 1;
    if (!builder_number(builder, "head_dim", 0, &head_dim, error))
        return false;
    if (share != NULL && !json_double(share, &factor))
        return error_set(error, "config.json: partial_rotary_factor is not a number");
    double turned = trunc(head_dim * factor);
    if (!(turned > 0 && turned <= UINT32_MAX))
        return error_set(error, "config.json: head_dim is missing, or partial_rotary_factor %g out of range", factor);
    gguf_set_u32(&builder->model->kvs, builder_key(builder, key), (uint32_t)turned);
    return true;
}

static bool emit_rope(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *all = hparams_get(hparams, "rope_parameters");
    if (!json_is(json_get(all, "full_attention"), JSON_OBJECT))
        return error_set(error, "config.json: rope_parameters has no full_attention");
    if (!set_rotary(builder, "rope.dimension_count", hparams_rope(hparams, "partial_rotary_factor"), error))
        return false;
    return !json_is(json_get(all, "sliding_attention"), JSON_OBJECT) ||
           set_rotary(builder, "rope.dimension_count_swa", hparams_rope_sliding(hparams, "partial_rotary_factor"),
                      error);
}

static const struct key_row keys[] = {
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {.emit = emit_heads},
    {"attention.sliding_window", GGUF_U32, IF_TRUE, "sliding_window"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", GGUF_U32, REQUIRED, "shared_expert_intermediate_size"},
    {"expert_weights_norm", GGUF_BOOL, ALWAYS, .value = 1},
    {"expert_weights_scale", GGUF_F32, REQUIRED, "moe_routed_scaling_factor"},
    {"expert_gating_func", GGUF_U32, ALWAYS, .value = 2}, /* sigmoid */
    {"leading_dense_block_count", GGUF_U32, .compute = compute_dense_layers},
    {.emit = emit_rope},
    {0},
};

/* Adds chat_template.jinja, which overrides tokenizer_config.json's template; a turn ends with the first id of
 * eos_token_id that does not begin a text. */
static bool after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    struct gguf_kvs *kvs = &builder->model->kvs;
    const struct json *ends = hparams_get(input->hparams, "eos_token_id"), *end;
    uint64_t begin = UINT64_MAX, id = UINT64_MAX;
    size_t length;
    bool absent;
    char *text = document_text(input->checkpoint, "chat_template.jinja", &length, &absent, error);
    if (text == NULL && !absent)
        return false;
    if (text != NULL)
        gguf_set_string(kvs, "tokenizer.chat_template", text, unify_newlines(text, length));
    free(text);
    json_u64(hparams_get(input->hparams, "bos_token_id"), &begin);
    for (end = json_is(ends, JSON_ARRAY) ? json_first(ends) : NULL; end != NULL; end = json_next(end))
        if (json_u64(end, &id) && id != begin && id <= UINT32_MAX)
            break;
    if (end != NULL)
        gguf_set_u32(kvs, "tokenizer.ggml.eot_token_id", (uint32_t)id);
    return true;
}

const struct family laguna_family = {
    .name = "laguna",
    .summary = "Laguna",
    .hf = FAMILY_NAMES({"LagunaForCausalLM"}),
    .tensors = {tensors, qk_norm_tensors, expert_gate_first_tensors, router_tensors, decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&laguna_vocab},
    .after_vocab = after_vocab,
};
