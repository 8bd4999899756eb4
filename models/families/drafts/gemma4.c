/* Draft models for Gemma 4. conversion/gemma.py. */
#include "base/text.h"
#include "models/families/drafts/dflash.h"
#include "models/families/gemma/gemma.h"
#include "quant/views/convert.h"
#include "text/json_write.h"

#include <math.h>
#include <string.h>

/* Draft models for Gemma 4: their layers use the last keys and values of the target model; projections take in and give
 * back its states. conversion/gemma.py. */

/* Only transformers uses the list of likely tokens. */
static const struct relation_row gemma4_assistant_tensors[] = {
    {"pre_projection", "nextn.pre_projection"},
    {"post_projection", "nextn.post_projection"},
    {"masked_embedding.*", NULL},
    {0},
};

static const struct key_row gemma4_assistant_keys[] = {
    {"embedding_length_out", GGUF_U32, REQUIRED, "backbone_hidden_size"},
    {"nextn_predict_layers", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {0},
};

const struct family gemma4_assistant_family = {
    .name = "gemma4-assistant",
    .no_forms = "the list of likely tokens below masked_embedding., nor whether there was one",
    .summary = "Gemma 4 draft models",
    .hf = FAMILY_NAMES({"Gemma4AssistantForCausalLM"}, {"Gemma4UnifiedAssistantForCausalLM"}),
    .tensors = {gemma4_assistant_tensors, gemma4_tensors, qk_norm_tensors, decoder_tensors},
    .keys = {base_keys, gemma3_keys, gemma4_keys, gemma4_assistant_keys},
    .vocabs = {&gemma4_vocab},
    .add_extras = gemma4_add_rope_factors,
    .adjust = gemma3_count_tokens,
};

/* Gemma 4's DSpark: Gemma's layers, whose values are their keys. conversion/gemma.py, Gemma4DSparkModel. */

static const struct relation_row gemma4_dspark_tensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.pre_feedforward_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"},
    {"model.layers.{}.layer_scalar", "blk.{}.layer_output_scale.weight"},
    {0},
};

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char short_name[] = "model.confidence_proj.";
    name = dflash_rename(arena, dimensions, direction, name);
    bool is_short = direction == FORWARD && name != NULL && text_starts_with(name, short_name);
    return is_short ? arena_printf(arena, "model.confidence_head.proj.%s", name + strlen(short_name)) : name;
}

static bool all_full(const struct model_builder *builder)
{
    const struct json *types = hparams_get(builder->model->hparams, "layer_types");
    if (!json_is(types, JSON_ARRAY) || json_count(types) != builder->dimensions.n_layers)
        return false;
    for (const struct json *type = json_first(types); type != NULL; type = json_next(type))
        if (!json_string_is(type, "full_attention"))
            return false;
    return true;
}

/* Returns a value of dflash_config, or else of config.json, which the converter requires. */
static const struct json *mask_token(const struct model_builder *builder)
{
    const struct json *own = dflash_own(builder, "mask_token_id");
    return own != NULL ? own : hparams_get(builder->model->hparams, "mask_token_id");
}

/* Checks that the draft is of the one kind that the converter knows. */
static bool check(const struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *activation = hparams_get(hparams, "hidden_activation"),
                      *targets = dflash_value(builder, "target_layer_ids"), *type = hparams_rope(hparams, "rope_type"),
                      *mask = mask_token(builder);
    double softcap = 0;
    if (!json_bool(hparams_get(hparams, "attention_k_eq_v"), false) || !all_full(builder))
        return error_set(error, "config.json: attention_k_eq_v is not true, or layer_types has a layer without full "
                                "attention, which is not supported for a draft of Gemma 4");
    if (activation != NULL && !json_string_is(activation, "gelu_pytorch_tanh"))
        return error_set(error, "config.json: hidden_activation is not 'gelu_pytorch_tanh', the only one that is "
                                "supported for a draft of Gemma 4");
    if (json_bool(hparams_get(hparams, "attention_bias"), false) ||
        json_bool(hparams_get(hparams, "enable_moe_block"), false))
        return error_set(error, "config.json: attention_bias or enable_moe_block is true, which is not supported for a "
                                "draft of Gemma 4");
    if (!json_string_is(type, "default") && !json_string_is(type, "proportional"))
        return error_set(error, "config.json: rope_type is neither default nor proportional");
    if (mask == NULL || json_is(mask, JSON_NULL) || json_count(targets) == 0)
        return error_set(error, "config.json: mask_token_id or target_layer_ids is missing");
    return !json_double(hparams_get(hparams, "final_logit_softcapping"), &softcap) || softcap == 0 ||
           error_set(error, "config.json: final_logit_softcapping is not supported for a draft of Gemma 4");
}

/* Without rope_parameters, the converter takes those of Gemma 4's class, and not rope_scaling. */
static const char usual_rope[] = "{\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"proportional\", "
                                 "\"partial_rotary_factor\": 0.25, \"rope_theta\": 1000000.0}}}";

/* Checks that the draft has the whole vocabulary of its target, with a head of its own. */
static bool adjust(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    double all, drafted;
    if (json_count_members(hparams_get(hparams, "rope_parameters")) == 0 &&
        !hparams_put_first(builder->model->hparams, usual_rope, strlen(usual_rope), error))
        return false;
    if (!dflash_adjust(builder, error) || !check(builder, error))
        return false;
    bool is_smaller = json_double(hparams_get(hparams, "draft_vocab_size"), &drafted) && drafted != 0 &&
                      (!json_double(hparams_get(hparams, "vocab_size"), &all) || drafted != all);
    if (is_smaller || (tensor_set_find_text(set, "lm_head.weight") == NULL &&
                       tensor_set_find_text(set, "model.lm_head.weight") == NULL))
        return error_set(error, "a draft of Gemma 4 needs lm_head.weight, and the whole vocabulary: draft_vocab_size "
                                "is not supported");
    dimensions_set(&builder->dimensions, "own_head", 1);
    dimensions_set(&builder->dimensions, "embedding", json_bool(hparams_get(hparams, "has_embed_tokens"), true));
    return true;
}

static bool add_factors(struct model_builder *builder, struct error *error)
{
    double size, share;
    struct arena *arena = builder->model->arena;
    if (!dflash_check_target(builder, error) || !builder_number(builder, "global_head_dim", 0, &size, error) ||
        !builder_number(builder, "rope.partial_rotary_factor", 0.25, &share, error))
        return false;
    if (!json_string_is(hparams_rope(builder->model->hparams, "rope_type"), "proportional"))
        return true;
    double n_rotated = trunc(size * share / 2);
    if (!(share > 0 && share <= 1 && size <= UINT16_MAX) || size * share != 2 * n_rotated)
        return error_set(error,
                         "config.json: partial_rotary_factor is %g: an even number of the %g dimensions of a "
                         "head must rotate",
                         share, size);
    uint64_t n_factors = (uint64_t)size / 2;
    float *factors = arena_array(arena, n_factors + 1, sizeof *factors);
    for (uint64_t i = 0; i < n_factors; i++)
        factors[i] = (double)i < n_rotated ? 1.0f : 1e30f;
    tensor_set_add_view(builder->model->tensors, "rope_freqs.weight", view_numbers(arena, 1, &n_factors, factors));
    return true;
}

/* The draft has no layers with a window, so the rope of such layers does not count beside that of full attention. */
static bool forget_sliding(struct model_builder *builder, struct error *error)
{
    (void)error;
    if (json_get(hparams_get(builder->model->hparams, "rope_parameters"), "full_attention") != NULL)
        gguf_kvs_remove(&builder->model->kvs, builder_key(builder, "rope.freq_base_swa"));
    return true;
}

static bool emit_scale(struct model_builder *builder, struct error *error)
{
    double width;
    if (!builder_number(builder, "hidden_size", 0, &width, error))
        return false;
    gguf_set_f32(&builder->model->kvs, builder_key(builder, "embedding_scale"), sqrt(width));
    return true;
}

static const struct key_row gemma4_dspark_keys[] = {
    {.emit = forget_sliding},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "num_global_key_value_heads"},
    {"attention.key_length", GGUF_U32, REQUIRED, "global_head_dim"},
    {"attention.value_length", GGUF_U32, REQUIRED, "global_head_dim"},
    {"rope.dimension_count", GGUF_U32, REQUIRED, "global_head_dim"},
    {.emit = emit_scale},
    {"attention.scale", GGUF_F32, ALWAYS, .value = 1},
    {"hidden_activation", GGUF_STRING, ALWAYS, .text = "gelu_pytorch_tanh"},
    {.emit = dspark_emit},
    {0},
};

static bool set_mask_token(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    uint64_t id;
    (void)input;
    if (!json_u64(mask_token(builder), &id) || id > UINT32_MAX)
        return error_set(error, "config.json: mask_token_id is not a token");
    gguf_set_u32(&builder->model->kvs, "tokenizer.ggml.mask_token_id", (uint32_t)id);
    return true;
}

/* Returns the rope, whose factors are 1 where a head rotates. */
static const char *make_rope(const struct config_material *material)
{
    enum { MOST_FACTORS = UINT16_MAX };
    char share[JSON_FLOAT_TEXT], theta[JSON_FLOAT_TEXT];
    const struct tensor *factors = tensor_set_find_text(material->tensors, "rope_freqs.weight");
    double base = 10000, n_rotated = 0;
    gguf_get_f64(material->kvs, "dflash.rope.freq_base", &base);
    bool is_partial = factors != NULL && factors->dtype == &f32_dtype && factors->rank == 1 &&
                      factors->refusal == NULL && factors->shape[0] > 0 && factors->shape[0] <= MOST_FACTORS;
    uint64_t n = is_partial ? factors->shape[0] : 0;
    float *values = arena_array(material->arena, n + 1, sizeof *values);
    if (is_partial && !convert_values(tensor_view(factors, material->arena), 0, n, values, material->error)) {
        *material->failed = true;
        return NULL;
    }
    for (uint64_t i = 0; i < n; i++)
        n_rotated += values[i] == 1;
    const char *line = is_partial ? arena_printf(material->arena, "      \"partial_rotary_factor\": %s,\n",
                                                 json_f64_text(n_rotated / (double)n, share))
                                  : "";
    return arena_printf(material->arena,
                        "{\n    \"full_attention\": {\n%s      \"rope_theta\": %s,\n      \"rope_type\": \"%s\"\n    }"
                        "\n  }",
                        line, json_f32_text((float)base, theta), is_partial ? "proportional" : "default");
}

static const struct config_row config_rows[] = {
    {"num_global_key_value_heads", FROM_KEY, "attention.head_count_kv"},
    {"global_head_dim", FROM_KEY, "attention.key_length"},
    {"attention_k_eq_v", FROM_TEXT, .text = "true"},
    {"layer_types", FROM_LAYERS, "blk.{}.attn_q.weight", "'full_attention'|'full_attention'"},
    {"hidden_activation", FROM_KEY, "hidden_activation"},
    {"rope_parameters", .make = make_rope},
    {"rope_theta", FROM_NOWHERE},
    {"rope_scaling", FROM_NOWHERE},
    {"partial_rotary_factor", FROM_NOWHERE},
    {0},
};

const struct family gemma4_dspark_family = {
    .name = "dflash-gemma4",
    .told_by = "key:hidden_activation",
    .forms = CONFIG_FORMS({"Gemma4DSparkModel", "gemma4_text", NULL,
                           CONFIG_TABLES(draft_rows, dflash_common_rows, dspark_rows, config_rows), DRAFT_NOTE}),
    .architecture = "dflash",
    .summary = "Gemma 4's DSpark",
    .since = 11138,
    .hf = FAMILY_NAMES({"Gemma4DSparkModel"}),
    .tensors = {gemma4_dspark_tensors, dflash_tensors, qk_norm_tensors, decoder_tensors},
    .keys = {base_keys, dflash_keys, gemma4_dspark_keys},
    .drafts = true,
    .rename = rename_tensor,
    .adjust = adjust,
    .add_extras = add_factors,
    .after_vocab = set_mask_token,
};
