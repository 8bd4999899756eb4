/* Step 3.5 and 3.7, the text model: more heads in layers with a window. conversion/step3.py. */
#include "models/families/drafts/nextn.h"
#include "models/families/layers.h"
#include "models/families/shared.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct relation_row tensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm", .map = &plus_one},
    {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", .parallel = "row"},
    {"model.layers.{}.self_attn.k_proj", "blk.{}.attn_k", .parallel = "row"},
    {"model.layers.{}.self_attn.v_proj", "blk.{}.attn_v", .parallel = "row"},
    {"model.layers.{}.self_attn.g_proj", "blk.{}.attn_gate", .parallel = "row"},
    {"model.layers.{}.moe.gate", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.moe.router_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.moe.gate_proj", "blk.{}.ffn_gate_exps", "e f c -> e f c", "f"},
    {"model.layers.{}.moe.up_proj", "blk.{}.ffn_up_exps", "e f c -> e f c", "f"},
    {"model.layers.{}.moe.down_proj", "blk.{}.ffn_down_exps", "e c f -> e c f", "f"},
    {"model.layers.{}.share_expert.gate_proj", "blk.{}.ffn_gate_shexp", .parallel = "row"},
    {"model.layers.{}.share_expert.up_proj", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {"model.layers.{}.share_expert.down_proj", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {0},
};

/* Renames the heads of layers that predict, which are a level deeper. */
static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const struct {
        const char *stored, *known;
    } heads[] = {
        {"model.layers.{}.transformer.shared_head.output.weight", "model.layers.{}.shared_head.head.weight"},
        {"model.layers.{}.transformer.shared_head.norm.weight", "model.layers.{}.shared_head.norm.weight"},
    };
    uint64_t numbers[PATTERN_NUMBERS];
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const char *from = direction == FORWARD ? heads[i].stored : heads[i].known;
        if (pattern_match(from, name, strlen(name), numbers))
            return pattern_fill(arena, direction == FORWARD ? heads[i].known : heads[i].stored, numbers, "");
    }
    return name;
}

/* Sets the numbers of heads and key heads, in layers with a window and in others. */
static bool emit_heads(struct model_builder *builder, struct error *error)
{
    static const char *const keys[] = {"attention.head_count", "attention.head_count_kv"};
    static const char *const full[] = {"num_attention_heads", "num_attention_groups"};
    static const char *const window[] = {"attention_other_setting.num_attention_heads",
                                         "attention_other_setting.num_attention_groups"};
    struct layers marked, heads;
    for (size_t i = 0; i < 2; i++) {
        double n_full, n_window;
        if (!layers_new(builder, &marked, error) || !layers_new(builder, &heads, error) ||
            !builder_number(builder, full[i], -1, &n_full, error) ||
            !builder_number(builder, window[i], n_full, &n_window, error))
            return false;
        if (n_full < 0)
            return error_set(error, "config.json: %s is missing", full[i]);
        layers_mark(&marked, hparams_get(builder->model->hparams, "layer_types"), "sliding_attention");
        for (uint64_t layer = 0; layer < heads.n; layer++)
            heads.values[layer] = marked.values[layer] != 0 ? n_window : n_full;
        if (!layers_set_i32(builder, keys[i], &heads, error))
            return false;
    }
    return true;
}

static bool emit_windows(struct model_builder *builder, struct error *error)
{
    struct layers layers = {0};
    if (!layers_new(builder, &layers, error))
        return false;
    layers_mark(&layers, hparams_get(builder->model->hparams, "layer_types"), "sliding_attention");
    layers_set(builder, "attention.sliding_window_pattern", GGUF_BOOL, &layers);
    return true;
}

/* Computes the first number in the list moe_layers_enum: "3,4,5". */
static bool compute_leading(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const char *listed = json_string(hparams_get(builder->model->hparams, "moe_layers_enum"), NULL);
    char *end;
    *ret_value = 0;
    for (const char *at = listed; at != NULL && *at != '\0'; at = *end == ',' ? end + 1 : "") {
        long number = strtol(at, &end, 10);
        if (end == at)
            return error_set(error, "config.json: moe_layers_enum is not a list of numbers");
        if (at == listed || (double)number < *ret_value)
            *ret_value = number > 0 ? (double)number : 0;
    }
    return true;
}

static bool emit_clamps(struct model_builder *builder, struct error *error)
{
    return layers_emit_listed(builder, "swiglu_clamp_exp", "swiglu_limits", error) &&
           layers_emit_listed(builder, "swiglu_clamp_shexp", "swiglu_limits_shared", error);
}

static const struct key_row keys[] = {
    {.emit = emit_heads},
    {"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"},
    {.emit = emit_windows},
    {"attention.value_length", GGUF_U32, REQUIRED, "head_dim"},
    {"expert_count", GGUF_U32, REQUIRED, "moe_num_experts"},
    {"expert_used_count", GGUF_U32, REQUIRED, "moe_top_k"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", GGUF_U32, REQUIRED, "share_expert_dim"},
    {"expert_weights_scale", GGUF_F32, IF_PRESENT, "moe_router_scaling_factor"},
    {"expert_weights_norm", GGUF_BOOL, IF_PRESENT, "norm_expert_weight"},
    {"leading_dense_block_count", GGUF_U32, .compute = compute_leading},
    {"moe_every_n_layers", GGUF_U32, OR_DEFAULT, "moe_every_n_layer", 1},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, OR_DEFAULT, "rms_norm_eps", 1e-5},
    {.emit = emit_clamps},
    {.emit = nextn_emit},
    {0},
};

/* Splits a list of two bases: for full attention, and for a window. */
static bool split_theta(struct model_builder *builder, struct error *error)
{
    static const char *const bases[] = {"rope_theta", "local_rope_theta"};
    struct hparams *hparams = builder->model->hparams;
    const struct json *list = hparams_get(hparams, "rope_theta");
    double values[2];
    if (!json_is(list, JSON_ARRAY))
        return true;
    for (size_t i = 0; i < 2; i++)
        if (!json_double(json_at(list, i), &values[i]) || !(values[i] >= 0 && values[i] <= 1e15))
            return error_set(error, "config.json: rope_theta is a list, but not of two numbers");
    for (size_t i = 0; i < 2; i++)
        if (!hparams_override(hparams, bases[i], (uint64_t)values[i], error))
            return false;
    return true;
}

/* Returns the share of each head that layers of a type turn in a config.json of transformers 5. */
static double share_of(const struct hparams *hparams, const char *type)
{
    double share = 1;
    json_double(json_get(json_get(hparams_get(hparams, "rope_parameters"), type), "partial_rotary_factor"), &share);
    return share;
}

/* Gives a config.json of transformers 5 the keys that it was made from; its class always normalizes the weights of
 * experts. */
static bool undo_saving(struct model_builder *builder, struct error *error)
{
    enum { MAX_LAYERS = 1 << 10 };
    static const struct {
        const char *original, *saved;
    } sizes[] = {{"num_attention_groups", "num_key_value_heads"},
                 {"moe_num_experts", "n_routed_experts"},
                 {"moe_top_k", "num_experts_per_tok"}};
    struct gguf_model *model = builder->model;
    struct hparams *hparams = model->hparams;
    const struct json *types = hparams_get(hparams, "layer_types"), *experts = hparams_get(hparams, "mlp_layer_types");
    uint64_t size, n_dense = 0;
    if (hparams_get(hparams, sizes[0].original) != NULL || !json_is(experts, JSON_ARRAY) || !json_is(types, JSON_ARRAY))
        return true;
    for (const struct json *type = json_first(experts); json_string_is(type, "dense"); type = json_next(type))
        n_dense++;
    const char *text =
        arena_printf(model->arena, "{'norm_expert_weight': true, 'moe_layers_enum': '%" PRIu64 "'", n_dense);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (json_u64(hparams_get(hparams, sizes[i].saved), &size))
            text = arena_printf(model->arena, "%s, '%s': %" PRIu64, text, sizes[i].original, size);
    if (json_u64(hparams_get(hparams, "num_sliding_attention_heads"), &size))
        text = arena_printf(model->arena, "%s, 'attention_other_setting': {'num_attention_heads': %" PRIu64 "}", text,
                            size);
    text = arena_printf(model->arena, "%s, 'partial_rotary_factors': [", text);
    for (const struct json *type = json_first(types); type != NULL; type = json_next(type))
        text = arena_printf(model->arena, "%s%.17g%s", text, share_of(hparams, json_string(type, NULL)),
                            json_next(type) != NULL ? ", " : "");
    checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                    "config.json has the keys of transformers 5, such as num_key_value_heads instead of "
                    "num_attention_groups; the converter fails on that");
    return hparams_default(hparams, arena_printf(model->arena, "%s]}", text), error);
}

/* Refuses other shares of heads than those that llama.cpp turns, as the converter does. */
static bool check_shares(const struct hparams *hparams, struct error *error)
{
    const struct json *types = hparams_get(hparams, "layer_types"),
                      *shares = hparams_get(hparams, "partial_rotary_factors"),
                      *share = json_is(shares, JSON_ARRAY) ? json_first(shares) : NULL,
                      *type = json_is(types, JSON_ARRAY) ? json_first(types) : NULL;
    for (; type != NULL; type = json_next(type)) {
        double found = 0.5, turned = json_string_is(type, "sliding_attention") ? 1 : 0.5;
        if (share != NULL && !json_double(share, &found))
            return error_set(error, "config.json: partial_rotary_factors is not a list of numbers");
        if (found != turned)
            return error_set(error,
                             "config.json: %.32s layers turn %g of each head (partial_rotary_factor), and llama.cpp "
                             "%g: it has no key for that",
                             json_string(type, NULL) ? json_string(type, NULL) : "some", found, turned);
        share = share != NULL ? json_next(share) : NULL;
    }
    return true;
}

static bool adjust(struct model_builder *builder, struct error *error)
{
    return undo_saving(builder, error) && check_shares(builder->model->hparams, error) && split_theta(builder, error) &&
           nextn_count_blocks(builder, error);
}

/* Adds the frequencies of full attention, which turns the part of a head given for the first such layer. */
static bool add_freqs(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *types = hparams_get(hparams, "layer_types"),
                      *factors = hparams_get(hparams, "partial_rotary_factors");
    double head_dim, factor = 0;
    if (!rope_is_llama3(builder))
        return true;
    const struct json *type = json_is(types, JSON_ARRAY) ? json_first(types) : NULL,
                      *of_type = json_is(factors, JSON_ARRAY) ? json_first(factors) : NULL;
    while (type != NULL && of_type != NULL && !json_string_is(type, "full_attention")) {
        type = json_next(type);
        of_type = json_next(of_type);
    }
    if (type == NULL || !json_double(of_type, &factor))
        return error_set(error, "config.json: no layer of full attention has its partial_rotary_factor");
    return compute_head_dim(builder, &head_dim, error) &&
           rope_freqs_add(builder, 8, (double)(uint64_t)(head_dim * factor), head_dim, true, error);
}

const struct family step35_family = {
    .name = "step35",
    .summary = "Step 3.5 and 3.7 (language model)",
    .hf = FAMILY_NAMES({"Step3p5ForCausalLM"}, {"Step3p7ForConditionalGeneration"}),
    .tensors = {tensors, plus_one_tensors, nextn_tensors, decoder_tensors},
    .keys = {base_keys, keys},
    .exports_mtp = true,
    .vocabs = {&bpe_vocab},
    .rename = rename_tensor,
    .add_extras = add_freqs,
    .add_dimensions = nextn_add_dimensions,
    .adjust = adjust,
};
