/* Ling and Ring, the generations of Bailing, and Sarvam. */
#include "models/families/deepseek/deepseek.h"
#include "models/families/drafts/nextn.h"
#include "models/families/layers.h"
#include "models/families/linear_attention.h"
#include "models/family/layer_marks.h"
#include "quant/views/norms.h"

#include <string.h>

/* Ling and Ring 1 and 2, the first two generations of Bailing, and Sarvam. conversion/bailingmoe.py. */

static const struct relation_row common_tensors[] = {
    {"model.word_embeddings", "token_embd", .parallel = "row"},
    {"model.layers.{}.attention.dense", "blk.{}.attn_output", .parallel = "column"},
    {0},
};

static const struct view *normalize(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                    const struct view *view)
{
    bool is_wanted =
        direction == FORWARD && view->rank == 2 && dimensions != NULL && dimensions_get(dimensions, "norm_head") != 0;
    return is_wanted ? view_normalize_columns(arena, view) : view;
}

static const struct elementwise over_norm = {
    .forward_text = "x / (norm of its column + 1e-7), where norm_head is said",
    .backward_text = "x",
    .apply = normalize,
    .is_one_way = true,
    .exactness = "norms do not come back; without norm_head the model is the same",
};

static const struct relation_row tensors2[] = {
    {"model.layers.{}.attention.query_key_value", "blk.{}.attn_qkv", "(head d + kv_head k + kv_head v) ...",
     "head kv_head"},
    {"model.layers.{}.attention.query_layernorm", "blk.{}.attn_q_norm"},
    {"model.layers.{}.attention.key_layernorm", "blk.{}.attn_k_norm"},
    {"model.layers.{}.mlp.gate.expert_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.final_layernorm", "blk.{}.layer_output_norm"},
    {0},
};

static const struct view *center(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const struct view *view)
{
    const struct view *centered = direction == FORWARD ? view_less_mean(arena, view) : NULL;
    return centered != NULL ? centered : view;
}

static const struct elementwise minus_mean = {
    .forward_text = "x - mean",
    .backward_text = "x",
    .apply = center,
    .is_one_way = true,
    .exactness = "the mean does not come back: routers compare, so that it says nothing",
};

static const struct key_row bailing_keys[] = {
    {"rope.dimension_count", GGUF_U32, .compute = compute_head_dim},
    {"leading_dense_block_count", GGUF_U32, REQUIRED, "first_k_dense_replace"},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"expert_weights_scale", GGUF_F32, ALWAYS, .value = 1},
    {"expert_shared_count", GGUF_U32, REQUIRED, "num_shared_experts"},
    {"expert_weights_norm", GGUF_BOOL, REQUIRED, "norm_topk_prob"},
    {0},
};

static const struct key_row keys2[] = {
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_half},
    {"leading_dense_block_count", GGUF_U32, REQUIRED, "first_k_dense_replace"},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size", .by = "num_shared_experts"},
    {"expert_shared_feed_forward_length", GGUF_U32, IF_PRESENT, "moe_shared_expert_intermediate_size"},
    {"expert_weights_scale", GGUF_F32, REQUIRED, "routed_scaling_factor"},
    {"expert_shared_count", GGUF_U32, REQUIRED, "num_shared_experts"},
    {"expert_weights_norm", GGUF_BOOL, REQUIRED, "norm_topk_prob"},
    {"nextn_predict_layers", GGUF_U32, IF_PRESENT, "num_nextn_predict_layers"},
    {0},
};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    uint64_t head_dim = 0;
    if (!json_u64(hparams_get(hparams, "head_dim"), &head_dim) && dimensions_get(dimensions, "head") != 0)
        head_dim = dimensions_get(dimensions, "hidden") / dimensions_get(dimensions, "head");
    dimensions_set(dimensions, "pair", head_dim / 2);
}

static const struct config_row common_rows[] = {
    {"norm_head", FROM_TEXT, .text = "false"},
    {"use_bias", FROM_TENSOR, "blk.0.attn_output.bias"},
    {0},
};

static const struct config_row config2_rows[] = {
    {"use_qkv_bias", FROM_TENSOR, "blk.0.attn_qkv.bias"},
    {"use_qk_norm", FROM_TENSOR, "blk.0.attn_q_norm.weight"},
    {"moe_router_enable_expert_bias", FROM_TEXT, .text = "true"},
    {"score_function", .make = config_gating_function, .text = "'sigmoid'"},
    {"moe_shared_expert_intermediate_size", FROM_QUOTIENT, "expert_shared_feed_forward_length", "expert_shared_count"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length"},
    {0},
};

const struct family bailingmoe_family = {
    .name = "bailingmoe",
    .summary = "Ling, Ring",
    .hf = FAMILY_NAMES({"BailingMoeForCausalLM"}),
    .tensors = {TENSORS({"lm_head", "output", .parallel = "row", .map = &over_norm},
                        {"model.layers.{}.attention.query_key_value", "blk.{}.attn_q, blk.{}.attn_k, blk.{}.attn_v",
                         "(query head half pair + key kv_head half pair + value kv_head half pair) ... -> "
                         "(query head pair half) ..., (key kv_head pair half) ..., (value kv_head half pair) ...",
                         "head kv_head"}),
                common_tensors, expert_tensors, router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"BailingMoeForCausalLM", "bailing_moe", NULL,
                           CONFIG_TABLES(silu_rows, num_experts_rows, common_rows,
                                         CONFIG_ROWS({"use_qkv_bias", FROM_TENSOR, "blk.0.attn_q.bias"})),
                           OWN_CLASS_NOTE}),
    .keys = {base_keys, bailing_keys},
    .vocabs = {&bpe_vocab},
    .dimensions = {qkv_dimensions, DIMENSIONS({"norm_head", "norm_head"})},
    .add_dimensions = add_dimensions,
};

const struct family bailingmoe2_family = {
    .name = "bailingmoe2",
    .summary = "Ling 2, Ring 2",
    .hf = FAMILY_NAMES({"BailingMoeV2ForCausalLM"}),
    .tensors = {tensors2, common_tensors, nextn_tensors, expert_tensors, router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"BailingMoeV2ForCausalLM", "bailing_moe_v2", NULL,
                           CONFIG_TABLES(silu_rows, num_experts_rows, common_rows, config2_rows), OWN_CLASS_NOTE}),
    .keys = {base_keys, keys2},
    .vocabs = {&bpe_vocab},
    .add_dimensions = nextn_add_dimensions,
    .adjust = nextn_count_blocks,
};

const struct family sarvam_family = {
    .name = "sarvam",
    .architecture = "bailingmoe2",
    .summary = "Sarvam",
    .hf = FAMILY_NAMES({"SarvamMoEForCausalLM"}, {"modeling_sarvam_moe.SarvamMoEForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.mlp.gate.expert_bias", "blk.{}.exp_probs_b.bias", .map = &minus_mean}),
                tensors2, common_tensors, nextn_tensors, expert_tensors, router_tensors, decoder_tensors},
    .keys = {base_keys, keys2, KEYS({"rope.dimension_count", GGUF_U32, .compute = compute_head_dim})},
    .vocabs = {&bpe_vocab},
    .add_dimensions = nextn_add_dimensions,
    .adjust = nextn_count_blocks,
};

/* Ling 3, the third generation of Bailing: delta attention, and latent attention in the last layer of each group.
 * conversion/bailingmoe3.py. */

#define ATTENTION "model.layers.{}.attention"

/* "latent_gate" stands for the g_proj of layers with latent attention. */
static const struct relation_row tensors[] = {
    {"linear_proj.*", NULL}, /* of pictures */
    {"model.word_embeddings", "token_embd", .parallel = "row"},
    {ATTENTION ".A_log", "blk.{}.ssm_a", "row -> row 1", "row", .map = &plus_exp},
    {ATTENTION ".f_proj", "blk.{}.ssm_f_a", .parallel = "row"},
    {ATTENTION ".g_proj", "blk.{}.ssm_g_a", .parallel = "row"},
    {ATTENTION ".latent_gate", "blk.{}.attn_gate", .parallel = "row"},
    {ATTENTION ".q_proj", "blk.{}.attn_q", "(head d) ...", "head"},
    {ATTENTION ".k_proj", "blk.{}.attn_k", "(head d) ...", "head"},
    {ATTENTION ".v_proj", "blk.{}.attn_v", "(head d) ...", "head"},
    {ATTENTION ".o_proj", "blk.{}.attn_output", .parallel = "column", .when = "!has:blk.{}.attn_kv_a_mqa"},
    {ATTENTION ".dense", "blk.{}.attn_output", .parallel = "column", .when = "has:blk.{}.attn_kv_a_mqa"},
    {ATTENTION ".q_a_proj", "blk.{}.attn_q_a"},
    {ATTENTION ".q_a_layernorm", "blk.{}.attn_q_a_norm"},
    {ATTENTION ".q_b_proj", "blk.{}.attn_q_b", "(head d) ...", "head"},
    {ATTENTION ".kv_a_proj_with_mqa", "blk.{}.attn_kv_a_mqa"},
    {ATTENTION ".kv_a_layernorm", "blk.{}.attn_kv_a_norm"},
    {ATTENTION ".kv_b_proj", "blk.{}.attn_k_b, blk.{}.attn_v_b", "(head (nope + value)) c -> head c nope, head value c",
     "head"},
    {"model.layers.{}.mlp.gate.expert_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.final_layernorm", "blk.{}.layer_output_norm"},
    {0},
};

static bool has_latent_attention(uint64_t layer, uint64_t n_layers, uint64_t group)
{
    return layer >= n_layers || (layer + 1) % group == 0 || layer >= n_layers / group * group;
}

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char *const gates[] = {ATTENTION ".g_proj.weight", ATTENTION ".latent_gate.weight"};
    uint64_t numbers[PATTERN_NUMBERS], group = dimensions_get(dimensions, "layer_group");
    if (!pattern_match(gates[direction], name, strlen(name), numbers))
        return name;
    bool is_latent = group > 0 && has_latent_attention(
                                      numbers[0], dimensions->n_layers - dimensions_get(dimensions, "nextn"), group);
    return direction == BACKWARD || is_latent ? pattern_fill(arena, gates[!direction], numbers, "") : name;
}

static bool check_kind(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *gates = hparams_get(hparams, "gated_attention_proj_granularity_type");
    if (!json_bool(hparams_get(hparams, "no_kda_lora"), false))
        return error_set(error, "config.json: no_kda_lora is not true: projections of low rank are not supported");
    if (!json_bool(hparams_get(hparams, "kda_safe_gate"), false))
        return error_set(error, "config.json: kda_safe_gate is not true: other gates are not supported");
    if (!json_string_is(gates, "head_wise"))
        return error_set(error, "config.json: gated_attention_proj_granularity_type is not 'head_wise'");
    if (dimensions_get(&builder->dimensions, "layer_group") == 0)
        return error_set(error, "config.json: layer_group_size is missing, or not a whole number above 0");
    kda_look(builder);
    return nextn_count_blocks(builder, error) &&
           hparams_override(builder->model->hparams, "num_key_value_heads", 1, error);
}

static bool emit_kv_heads(struct model_builder *builder, struct error *error)
{
    uint64_t n_predicting = dimensions_get(&builder->dimensions, "nextn");
    struct layers layers;
    if (!layers_new(builder, &layers, error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] =
            has_latent_attention(i, layers.n - n_predicting, dimensions_get(&builder->dimensions, "layer_group"));
    return layers_set_i32(builder, "attention.head_count_kv", &layers, error);
}

static bool emit_clamps(struct model_builder *builder, struct error *error)
{
    return layers_emit_listed(builder, "swiglu_clamp_exp", "expert_swiglu_limit_list", error) &&
           layers_emit_listed(builder, "swiglu_clamp_shexp", "share_expert_swiglu_limit_list", error);
}

/* Sets the sections of the rope of Ling 3 VL: of time, height and width. */
static bool emit_sections(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *section = json_first(hparams_get(hparams, "mrope_section"));
    struct buffer elements = {0};
    uint64_t n_rotary, size, sum = 0;
    if (strcmp(builder->hf->name, "BailingMoeV3VLForConditionalGeneration") != 0)
        return true;
    if (!hparams_count(hparams, "qk_rope_head_dim", 1, INT32_MAX, &n_rotary, error))
        return false;
    for (unsigned i = 0; i < 4; i++, section = section != NULL ? json_next(section) : NULL) {
        bool is_known = i < 3 && json_u64(section, &size) && size <= INT32_MAX;
        sum += is_known ? size : 0;
        buffer_append_le(&elements, is_known ? (uint32_t)size : 0, 4);
    }
    if (2 * sum != n_rotary) {
        buffer_free(&elements);
        return error_set(error, "config.json: the sum of mrope_section is %llu, but half of qk_rope_head_dim is %llu",
                         (unsigned long long)sum, (unsigned long long)n_rotary / 2);
    }
    gguf_set_array(&builder->model->kvs, builder_key(builder, "rope.dimension_sections"), GGUF_I32, 4, &elements);
    return true;
}

static const struct key_row bailingmoe3_keys[] = {
    {.emit = emit_kv_heads},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"ssm.conv_kernel", GGUF_U32, REQUIRED, "short_conv_kernel_size"},
    {"kda.head_dim", GGUF_U32, REQUIRED, "head_dim"},
    {"kda.safe_gate", GGUF_BOOL, REQUIRED, "kda_safe_gate"},
    {"kda.gate_lower_bound", GGUF_F32, REQUIRED, "kda_lower_bound"},
    {"attention.q_lora_rank", GGUF_U32, IF_PRESENT, "q_lora_rank"},
    {"attention.kv_lora_rank", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"rope.dimension_count", GGUF_U32, REQUIRED, "qk_rope_head_dim"},
    {"attention.key_length", GGUF_U32, REQUIRED, "kv_lora_rank", .plus = "qk_rope_head_dim"},
    {"attention.key_length_mla", GGUF_U32, REQUIRED, "qk_nope_head_dim", .plus = "qk_rope_head_dim"},
    {"attention.value_length_mla", GGUF_U32, REQUIRED, "v_head_dim"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", GGUF_U32, REQUIRED, "moe_shared_expert_intermediate_size"},
    {"expert_shared_count", GGUF_U32, REQUIRED, "num_shared_experts", .until = LING_SHARED_EXPERTS},
    {"expert_shared_count", GGUF_U32, OR_DEFAULT, "num_shared_experts", 1, .since = LING_SHARED_EXPERTS},
    {"leading_dense_block_count", GGUF_U32, REQUIRED, "first_k_dense_replace"},
    {"expert_weights_scale", GGUF_F32, REQUIRED, "routed_scaling_factor"},
    {"expert_weights_norm", GGUF_BOOL, REQUIRED, "norm_topk_prob"},
    {.emit = emit_clamps},
    {.emit = nextn_emit},
    {.emit = emit_sections},
    {0},
};

/* Returns the size of a group: the first layer with latent attention is the last one of a group, unless the layers are
 * fewer than a group. */
static const char *make_group(const struct config_material *material)
{
    struct layer_marks marks;
    uint64_t first = 0;
    if (!layer_marks_of_tensors(material->tensors, "blk.{}.attn_kv_a_mqa.weight", material->n_layers, material->arena,
                                &marks))
        return NULL;
    while (first < marks.n && !marks.marked[first])
        first++;
    return arena_printf(material->arena, "%llu", (unsigned long long)first + 1);
}

/* The last layer of a group has latent attention. */
static const struct config_row config_rows[] = {
    {"num_key_value_heads", FROM_KEY, "attention.head_count"},
    {"no_kda_lora", FROM_TEXT, .text = "true"},
    {"gated_attention_proj_granularity_type", FROM_TEXT, .text = "'head_wise'"},
    {"layer_group_size", .make = make_group},
    {"qk_nope_head_dim", FROM_DIFFERENCE, "attention.key_length_mla", "rope.dimension_count"},
    {"score_function", .make = config_gating_function},
    {0},
};

const struct family bailingmoe3_family = {
    .name = "bailingmoe3",
    .summary = "Ling 3, Ling 3 VL (language model)",
    .hf = FAMILY_NAMES({"BailingMoeV3ForCausalLM"}, {"BailingMoeV3VLForConditionalGeneration", .since = 11173}),
    .tensors = {tensors, kda_attention_tensors, nextn_tensors, expert_tensors, router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"BailingMoeV3ForCausalLM", "bailing_moe_v3", "!key:rope.dimension_sections",
                           CONFIG_TABLES(silu_rows, num_experts_rows, config_rows), OWN_CLASS_NOTE},
                          {"BailingMoeV3ForCausalLM", "bailing_moe_v3", NULL,
                           CONFIG_TABLES(silu_rows, num_experts_rows, config_rows), HALF_NOTE}),
    .keys = {base_keys, bailingmoe3_keys},
    .exports_mtp = true,
    .vocabs = {&bpe_vocab},
    .rename = rename_tensor,
    .dimensions = {mla_dimensions, DIMENSIONS({"layer_group", "layer_group_size"})},
    .add_dimensions = nextn_add_dimensions,
    .adjust = check_kind,
};
