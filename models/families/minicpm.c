/* MiniCPM 1, 2, 4 and 3. conversion/minicpm.py. */
#include "models/families/deepseek/deepseek.h"
#include "models/families/llama/llama.h"
#include "models/families/phi.h"
#include "text/json_write.h"

#include <math.h>

static const struct relation_row tensors3[] = {
    {"model.layers.{}.self_attn.q_a_proj", "blk.{}.attn_q_a"},
    {"model.layers.{}.self_attn.q_a_layernorm", "blk.{}.attn_q_a_norm"},
    {"model.layers.{}.self_attn.q_b_proj", "blk.{}.attn_q_b", .parallel = "row"},
    {"model.layers.{}.self_attn.kv_a_proj_with_mqa", "blk.{}.attn_kv_a_mqa"},
    {"model.layers.{}.self_attn.kv_a_layernorm", "blk.{}.attn_kv_a_norm"},
    {"model.layers.{}.self_attn.kv_b_proj", "blk.{}.attn_kv_b", .parallel = "row"},
    {0},
};

static bool compute_residual_scale(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double depth;
    if (!builder_number(builder, "scale_depth", NAN, &depth, error))
        return false;
    if (isnan(depth) || builder->dimensions.n_layers == 0)
        return error_set(error, "config.json: scale_depth or num_hidden_layers is missing");
    *ret_value = depth / sqrt((double)builder->dimensions.n_layers);
    return true;
}

static bool compute_logit_scale(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double hidden, base;
    if (!builder_number(builder, "hidden_size", 0, &hidden, error) ||
        !builder_number(builder, "dim_model_base", 0, &base, error))
        return false;
    if (!(base > 0))
        return error_set(error, "config.json: dim_model_base is missing, or not above 0");
    *ret_value = hidden / base;
    return true;
}

static const struct key_row keys3[] = {
    FILE_TYPE_KEY,
    {"context_length", GGUF_U32, REQUIRED, "max_position_embeddings"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "num_key_value_heads"},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, REQUIRED, "rms_norm_eps"},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"attention.q_lora_rank", GGUF_U32, IF_PRESENT, "q_lora_rank"},
    {"attention.kv_lora_rank", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"attention.key_length", GGUF_U32, REQUIRED, "qk_nope_head_dim", .plus = "qk_rope_head_dim"},
    {"rope.dimension_count", GGUF_U32, REQUIRED, "qk_rope_head_dim"},
    {0},
};

static bool add_factors(struct model_builder *builder, struct error *error)
{
    uint64_t head = dimensions_get(&builder->dimensions, "head");
    return head == 0 ||
           add_rope_factor_tensors(builder, dimensions_get(&builder->dimensions, "hidden") / head / 2, error);
}

static bool add_factors3(struct model_builder *builder, struct error *error)
{
    uint64_t dimensions;
    return !json_u64(hparams_get(builder->model->hparams, "qk_rope_head_dim"), &dimensions) ||
           add_rope_factor_tensors(builder, dimensions / 2, error);
}

static const char *make_depth_scale(const struct config_material *material)
{
    char digits[JSON_FLOAT_TEXT];
    double scale;
    if (!gguf_get_f64(material->kvs, "minicpm.residual_scale", &scale) || !isfinite(scale))
        return NULL;
    return arena_strdup(material->arena, json_f32_text((float)(scale * sqrt((double)material->n_layers)), digits));
}

static const struct config_row config_rows[] = {
    {"scale_depth", .make = make_depth_scale},
    {"dim_model_base", FROM_QUOTIENT, "embedding_length", "logit_scale"},
    {0},
};

const struct family minicpm_family = {
    .name = "minicpm",
    .summary = "MiniCPM 1, 2 and 4",
    .hf = FAMILY_NAMES({"MiniCPMForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight", QUERY_ROTARY, "head"},
                        {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight", KEY_ROTARY, "kv_head"}),
                decoder_tensors},
    .forms =
        CONFIG_FORMS({"MiniCPMForCausalLM", "minicpm", NULL, CONFIG_TABLES(silu_rows, config_rows), OWN_CLASS_NOTE}),
    .keys = {base_keys, KEYS({"embedding_scale", GGUF_F32, REQUIRED, "scale_emb"},
                             {"residual_scale", GGUF_F32, .compute = compute_residual_scale},
                             {"logit_scale", GGUF_F32, .compute = compute_logit_scale})},
    .vocabs = {&spm_vocab},
    .add_extras = add_factors,
};

/* Returns the size of a head's values, from the columns of the output. */
static const char *make_value_size(const struct config_material *material)
{
    double n_heads;
    const struct tensor *output = tensor_set_find_text(material->tensors, "blk.0.attn_output.weight");
    if (output == NULL || output->rank != 2 || !config_number_of_layer(material, "attention.head_count", 0, &n_heads) ||
        n_heads < 1)
        return NULL;
    return arena_printf(material->arena, "%.0f", trunc((double)output->shape[1] / n_heads));
}

/* All released models have the same scales of embeddings, residuals and logits. */
static const struct config_row config3_rows[] = {
    {"q_lora_rank", FROM_KEY, "attention.q_lora_rank", .text = "null"},
    {"qk_nope_head_dim", FROM_DIFFERENCE, "attention.key_length", "rope.dimension_count"},
    {"v_head_dim", .make = make_value_size},
    {"attention_bias", FROM_TENSOR, "blk.0.attn_q_a.bias"},
    {"scale_emb", FROM_TEXT, .text = "12"},
    {"scale_depth", FROM_TEXT, .text = "1.4"},
    {"dim_model_base", FROM_TEXT, .text = "256"},
    {0},
};

const struct family minicpm3_family = {
    .name = "minicpm3",
    .summary = "MiniCPM 3",
    .hf = FAMILY_NAMES({"MiniCPM3ForCausalLM"}),
    .tensors = {tensors3, decoder_tensors},
    .forms = CONFIG_FORMS({"MiniCPM3ForCausalLM", "minicpm3", NULL, CONFIG_TABLES(silu_rows, config3_rows)}),
    .keys = {keys3},
    .vocabs = {&spm_vocab},
    .add_extras = add_factors3,
};
