/* EXAONE 3, 4 and 4.5, dense and with experts. conversion/exaone.py. */
#include "base/text.h"
#include "models/families/drafts/nextn.h"
#include "models/families/layers.h"
#include "models/families/shared.h"

#include <math.h>
#include <string.h>

static const struct relation_row tensors[] = {
    {"transformer.h.{}.attn.attention.q_proj", "blk.{}.attn_q", .parallel = "row"},
    {"transformer.h.{}.attn.attention.k_proj", "blk.{}.attn_k", .parallel = "row"},
    {"transformer.h.{}.attn.attention.v_proj", "blk.{}.attn_v", .parallel = "row"},
    {"transformer.h.{}.attn.attention.out_proj", "blk.{}.attn_output", .parallel = "column"},
    {"transformer.h.{}.mlp.c_fc_0", "blk.{}.ffn_gate", .parallel = "row"},
    {"transformer.h.{}.mlp.c_fc_1", "blk.{}.ffn_up", .parallel = "row"},
    {"transformer.h.{}.attn.attention.rotary.inv_freq", NULL},
    {0},
};

static bool compute_rotary(const struct model_builder *builder, double *ret_value, struct error *error)
{
    uint64_t head = dimensions_get(&builder->dimensions, "head"),
             hidden = dimensions_get(&builder->dimensions, "hidden");
    const char *activation = json_string(hparams_get(builder->model->hparams, "activation_function"), NULL);
    double factor;
    if (head == 0 || hidden == 0)
        return error_set(error, "config.json: hidden_size or num_attention_heads is missing, 0, or too large");
    if (activation != NULL && strcmp(activation, "silu") != 0)
        return error_set(error, "config.json: activation_function is '%.64s', not 'silu'", activation);
    if (!builder_number(builder, "rope.partial_rotary_factor", 1, &factor, error))
        return false;
    *ret_value = trunc(factor * (double)(hidden / head));
    return true;
}

/* Sets the layers with a window: listed, by a repeated pattern of letters L and G, or all but each nth; sets no key if
 * config.json has neither. */
static bool emit_window_pattern(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *types = hparams_get(hparams, "layer_types"),
                      *given = hparams_get(hparams, "sliding_window_pattern");
    struct layers layers;
    size_t length = 0;
    uint64_t each = 0;
    if (json_is(types, JSON_ARRAY))
        return emit_listed_windows(builder, error);
    if (!layers_new(builder, &layers, error))
        return false;
    const char *letters = json_string(given, &length);
    if (length == 0 && (!json_u64(given, &each) || each == 0))
        return true;
    layers.n -= dimensions_get(&builder->dimensions, "nextn");
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = length > 0 ? letters[i % length] == 'L' : (i + 1) % each != 0;
    layers_set(builder, "attention.sliding_window_pattern", GGUF_BOOL, &layers);
    return true;
}

static bool emit_window(struct model_builder *builder, struct error *error)
{
    uint64_t window;
    if (!json_u64(hparams_get(builder->model->hparams, "sliding_window"), &window) || window > UINT32_MAX)
        return true;
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "attention.sliding_window"), (uint32_t)window);
    return emit_window_pattern(builder, error);
}

static const struct key_row moe_layer_keys[] = {
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {.emit = emit_window},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"expert_shared_count", GGUF_U32, REQUIRED, "num_shared_experts|n_shared_experts"},
    {"expert_shared_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size",
     .by = "num_shared_experts|n_shared_experts"},
    {"expert_weights_scale", GGUF_F32, REQUIRED, "routed_scaling_factor"},
    {"expert_weights_norm", GGUF_BOOL, REQUIRED, "norm_topk_prob"},
    {"leading_dense_block_count", GGUF_U32, OR_DEFAULT, "first_k_dense_replace|first_last_k_dense_replace", 0},
    {"nextn_predict_layers", GGUF_U32, OR_DEFAULT, "num_nextn_predict_layers", 0},
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"},
    {0},
};

/* Copies the tensors that layers that predict share: four of them, or all. */
static void repeat_shared(struct model_builder *builder)
{
    nextn_repeat(builder, json_bool(hparams_get(builder->model->hparams, "mtp_share_layers"), false));
}

static const struct config_row config_rows[] = {
    {"activation_function", FROM_TEXT, .text = "'silu'"},
    {"num_layers", FROM_KEY, "block_count"},
    {"num_hidden_layers", FROM_NOWHERE},
    {"layer_norm_epsilon", FROM_KEY, "attention.layer_norm_epsilon"},
    {0},
};

const struct family exaone_family = {
    .name = "exaone",
    .summary = "EXAONE 3",
    .hf = FAMILY_NAMES({"ExaoneForCausalLM"}),
    .tensors = {tensors, gpt_tensors},
    .forms = CONFIG_FORMS({"ExaoneForCausalLM", "exaone", NULL, CONFIG_TABLES(config_rows), OWN_CLASS_NOTE}),
    .keys = {base_keys, KEYS({"rope.dimension_count", GGUF_U32, .compute = compute_rotary})},
    .vocabs = {&bpe_vocab},
    .add_extras = add_rope_freqs,
};

/* Adds the frequencies; a rope without a factor is slowed by 16. */
static bool add_freqs(struct model_builder *builder, struct error *error)
{
    double dimensions;
    if (!rope_is_llama3(builder))
        return true;
    return compute_head_dim(builder, &dimensions, error) &&
           rope_freqs_add(builder, 16, dimensions, dimensions, false, error);
}

static const struct config_row config4_rows[] = {
    {"layer_types", FROM_LAYERS, "attention.sliding_window_pattern", "'sliding_attention'|'full_attention'"},
    {"sliding_window", FROM_KEY, "attention.sliding_window"},
    {0},
};

static const struct config_row config4_full_rows[] = {
    {"layer_types", FROM_LAYERS, "block_count", "'full_attention'|null"},
    {"sliding_window_pattern", FROM_TEXT, .text = "null"},
    {"sliding_window", FROM_TEXT, .text = "null"},
    {0},
};

/* Renames tensors; leaves out tensors for layers that predict if the model has no such layer. */
static const char *rename_or_leave_out(struct arena *arena, const struct dimensions *dimensions,
                                       enum direction direction, const char *name)
{
    if (direction == FORWARD && dimensions_get(dimensions, "nextn") == 0 && text_starts_with(name, "mtp."))
        return NULL;
    return nextn_rename(arena, dimensions, direction, name);
}

const struct family exaone4_family = {
    .name = "exaone4",
    .summary = "EXAONE 4 and 4.5",
    .hf = FAMILY_NAMES({"Exaone4ForCausalLM"}, {"Exaone4_5_ForConditionalGeneration"}),
    .tensors = {TENSORS({"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
                        {"model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"}),
                qk_norm_tensors, nextn_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Exaone4ForCausalLM", "exaone4", "key:attention.sliding_window_pattern",
                           CONFIG_TABLES(silu_rows, config4_rows)},
                          {"Exaone4ForCausalLM", "exaone4", NULL, CONFIG_TABLES(silu_rows, config4_full_rows)}),
    .keys = {base_keys,
             KEYS({"vocab_size", GGUF_U32, REQUIRED, "vocab_size"}, {.emit = emit_window}, {.emit = nextn_emit})},
    .vocabs = {&bpe_vocab},
    .add_dimensions = nextn_add_dimensions,
    .adjust = nextn_count_blocks,
    .rename = rename_or_leave_out,
    .renamed_late = "mtp.",
    .arrange = repeat_shared,
    .add_extras = add_freqs,
};

static const struct config_row config_moe_rows[] = {
    {"layer_types", FROM_LAYERS, "attention.sliding_window_pattern", "'sliding_attention'|'full_attention'"},
    {"sliding_window", FROM_KEY, "attention.sliding_window"},
    {"mlp_layer_types", FROM_LAYERS, "blk.{}.ffn_gate_inp.weight", "'sparse'|'dense'"},
    {0},
};

const struct family exaone_moe_family = {
    .name = "exaone-moe",
    .summary = "K-EXAONE",
    .hf = FAMILY_NAMES({"ExaoneMoEForCausalLM"}, {"ExaoneMoeForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.mlp.e_score_correction_bias", "blk.{}.exp_probs_b.bias"}), qk_norm_tensors,
                expert_tensors, router_tensors, nextn_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"ExaoneMoeForCausalLM", "exaone_moe", NULL, CONFIG_TABLES(silu_rows, num_experts_rows, config_moe_rows)}),
    .keys = {base_keys, moe_layer_keys},
    .vocabs = {&bpe_vocab},
    .add_dimensions = nextn_add_dimensions,
    .adjust = nextn_count_blocks,
    .rename = nextn_rename,
    .renamed_late = "mtp.",
    .arrange = repeat_shared,
    .add_extras = add_freqs,
};
