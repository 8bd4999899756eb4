/* The GLM families, and DeepSeek V3.2, which has GLM-5's layers. */
#include "models/families/deepseek/deepseek.h"
#include "models/families/drafts/nextn.h"
#include "models/families/layers.h"
#include "models/families/linear_attention.h"
#include "models/families/llama/llama.h"
#include "models/families/qwen/qwen.h"
#include "models/families/shared.h"
#include "models/tokenizers/vocab.h"
#include "text/json_write.h"

#include <math.h>
#include <string.h>

/* ChatGLM 2 and 3, glm-4-9b. conversion/chatglm.py. */

static const struct relation_row chatglm_tensors[] = {
    {"encoder.layers.{}.self_attention.query_key_value", "blk.{}.attn_qkv", "(head d + kv_head k + kv_head v) ...",
     "head kv_head"},
    {"encoder.layers.{}.self_attention.dense", "blk.{}.attn_output", .parallel = "column", .when = "!hf_names"},
    {"encoder.layers.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up", "(gate + up) ...", "gate up", .when = "!hf_names"},
    {"encoder.layers.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down", .parallel = "column", .when = "!hf_names"},
    {"encoder.layers.{}.input_layernorm", "blk.{}.attn_norm", .when = "!hf_names"},
    {"encoder.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm", .when = "!hf_names"},
    {"embedding.word_embeddings", "token_embd", .parallel = "row", .when = "!hf_names"},
    {"encoder.final_layernorm", "output_norm", .when = "!hf_names"},
    {"output_layer", "output", .parallel = "row", .when = "!hf_names"},
    {"rotary_pos_emb.inv_freq", NULL},
    {"model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up", "(gate + up) ...", "gate up", .when = "hf_names"},
    {0},
};

/* Like the converter, uses the width as the context length if the sequence length is missing. */
static const struct key_row chatglm_keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "seq_length|hidden_size|n_embed"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size|n_embed"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "hidden_size|n_embed", .times = 4},
    {"feed_forward_length", GGUF_U32, IF_PRESENT, "ffn_hidden_size|intermediate_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_head|num_attention_heads"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED,
     "multi_query_group_num|num_key_value_heads|n_head|num_attention_heads"},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, OR_DEFAULT, "layernorm_epsilon", 1e-5},
    FILE_TYPE_KEY,
    {0},
};

static bool chatglm_compute_rotary(const struct model_builder *builder, double *ret_value, struct error *error)
{
    uint64_t head = dimensions_get(&builder->dimensions, "head"),
             hidden = dimensions_get(&builder->dimensions, "hidden");
    double factor, width;
    if (head == 0 || hidden == 0)
        return error_set(error, "config.json: hidden_size or num_attention_heads is missing, 0, or too large");
    if (!builder_number(builder, "rope.partial_rotary_factor", 0.5, &factor, error) ||
        !builder_number(builder, "attention_dim", (double)(hidden / head), &width, error))
        return false;
    *ret_value = trunc(width * factor);
    return true;
}

static bool compute_base(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double ratio;
    if (!builder_number(builder, "rope_ratio", 1, &ratio, error))
        return false;
    *ret_value = 10000 * ratio;
    return true;
}

static void chatglm_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    if (hparams_get(hparams, "multi_query_group_num") == NULL && hparams_get(hparams, "seq_length") == NULL)
        dimensions_set(dimensions, "hf_names", 1);
}

static bool pad_vocabulary(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    uint64_t n_tokens;
    if (is_chatglm3(builder->model->hparams))
        return true;
    if (!hparams_count(builder->model->hparams, "vocab_size", 0, UINT32_MAX, &n_tokens, error) ||
        !hparams_count(builder->model->hparams, "padded_vocab_size|vocab_size", 0, UINT32_MAX, &n_tokens, error))
        return false;
    return hparams_override(builder->model->hparams, "vocab_size", n_tokens, error);
}

static const struct config_row chatglm_common_rows[] = {
    {"rms_norm_eps", FROM_KEY, "attention.layer_norm_rms_epsilon"},
    {"layernorm_epsilon", FROM_NOWHERE},
    {"head_dim", FROM_QUOTIENT, "embedding_length", "attention.head_count"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count"},
    {"max_position_embeddings", FROM_KEY, "context_length"},
    {0},
};

const struct family chatglm_family = {
    .name = "chatglm",
    .summary = "ChatGLM 2 and 3, glm-4-9b",
    .hf = FAMILY_NAMES({"GlmForCausalLM"}, {"ChatGLMModel"}, {"ChatGLMForConditionalGeneration"}),
    .tensors = {chatglm_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"GlmForCausalLM", "glm", "tensor:blk.0.attn_q.bias|tensor:blk.0.attn_qkv.bias",
         CONFIG_TABLES(silu_rows, chatglm_common_rows, CONFIG_ROWS({"attention_bias", FROM_TEXT, .text = "true"}))},
        {"GlmForCausalLM", "glm", NULL,
         CONFIG_TABLES(silu_rows, chatglm_common_rows, CONFIG_ROWS({"attention_bias", FROM_TEXT, .text = "false"}))}),
    .keys = {chatglm_keys, KEYS({"rope.dimension_count", GGUF_U32, .compute = chatglm_compute_rotary},
                                {".tokenizer.ggml.add_bos_token", GGUF_BOOL, ALWAYS, .value = 0},
                                {"rope.freq_base", GGUF_F32, .compute = compute_base}, {.emit = note_lost_rope})},
    .vocabs = {&chatglm3_vocab, &chatglm_vocab},
    .dropped_prefixes = TEXTS("transformer."),
    .dimensions = {DIMENSIONS({"kv_head", "multi_query_group_num", .kept = true})},
    .add_dimensions = chatglm_add_dimensions,
    .before_vocab = pad_vocabulary,
};

/* CogVLM: language model, with separate experts for the tokens of images. conversion/cogvlm.py. */

#define QKV "(head d + kv_head k + kv_head v) ..."

/* Names of the experts for images without "vision_", which would make them parts of the vision tower. */
static const struct relation_row cogvlm_tensors[] = {
    {"model.layers.{}.self_attn.language_expert_query_key_value", "blk.{}.attn_qkv", QKV, "head kv_head"},
    {"model.layers.{}.self_attn.language_expert_dense", "blk.{}.attn_output", NULL, "column"},
    {"model.layers.{}.mlp.language_mlp.gate_proj", "blk.{}.ffn_gate", NULL, "row"},
    {"model.layers.{}.mlp.language_mlp.up_proj", "blk.{}.ffn_up", NULL, "row"},
    {"model.layers.{}.mlp.language_mlp.down_proj", "blk.{}.ffn_down", NULL, "column"},
    {"model.layers.{}.self_attn.expert_query_key_value", "blk.{}.vis_attn_qkv", QKV, "head kv_head"},
    {"model.layers.{}.self_attn.expert_dense", "blk.{}.vis_attn_output", NULL, "column"},
    {"model.layers.{}.mlp.mlp.gate_proj", "blk.{}.vis_gate", NULL, "row"},
    {"model.layers.{}.mlp.mlp.up_proj", "blk.{}.vis_up", NULL, "row"},
    {"model.layers.{}.mlp.mlp.down_proj", "blk.{}.vis_down", NULL, "column"},
    {0},
};

const struct family cogvlm_family = {
    .name = "cogvlm",
    .summary = "CogVLM (language model)",
    .hf = FAMILY_NAMES({"CogVLMForCausalLM"}),
    .tensors = {cogvlm_tensors, decoder_tensors},
    .keys = {base_keys, llama_keys},
    LLAMA_VOCABS,
    .dropped_parts = TEXTS("vision_"),
    .dimensions = {DIMENSIONS({"kv_head", "num_multi_query_heads", .kept = true})},
    .note = "the converter leaves out the experts for images, which its list of CogVLM's tensors has; here they are",
    .add_extras = add_rope_freqs,
};

/* GLM-4-0414, and the language models of GLM-4.1V and GLM-OCR. conversion/glm.py. */

/* Multimodal models have their rotary rows in pairs, followed by rows that do not rotate. */
#define QUERY_PAIRS "(head (pair half + rest)) ... -> (head (half pair + rest)) ..."
#define KEY_PAIRS   "(kv_head (pair half + rest)) ... -> (kv_head (half pair + rest)) ..."

static const struct relation_row glm4_tensors[] = {
    {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", QUERY_PAIRS, "head", .when = "mrope"},
    {"model.layers.{}.self_attn.k_proj", "blk.{}.attn_k", KEY_PAIRS, "kv_head", .when = "mrope"},
    {"model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up", "(gate + up) ...", "gate up"},
    {"model.layers.{}.post_self_attn_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.post_mlp_layernorm", "blk.{}.post_ffw_norm"},
    {0},
};

static void glm4_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    const char *class_name = hparams_class(hparams);
    double factor = 0.5;
    uint64_t head_dim = 0;
    if (class_name != NULL && strcmp(class_name, "GlmOcrForConditionalGeneration") == 0)
        nextn_add_dimensions(dimensions, hparams);
    if (json_count(hparams_rope(hparams, "mrope_section")) == 0)
        return;
    if (!json_u64(hparams_get(hparams, "head_dim"), &head_dim) && dimensions_get(dimensions, "head") != 0)
        head_dim = dimensions_get(dimensions, "hidden") / dimensions_get(dimensions, "head");
    json_double(hparams_rope(hparams, "partial_rotary_factor"), &factor);
    if (!(factor >= 0 && factor <= 1) || head_dim > UINT32_MAX)
        return;
    uint64_t pairs = (uint64_t)((double)head_dim * factor) / 2;
    dimensions_set(dimensions, "mrope", 1);
    dimensions_set(dimensions, "pair", pairs);
    dimensions_set(dimensions, "rest", head_dim - 2 * pairs);
}

const struct family glm4_family = {
    .name = "glm4",
    .summary = "GLM-4-0414; the language models of GLM-4.1V and GLM-OCR",
    .hf = FAMILY_NAMES({"Glm4ForCausalLM"}, {"Glm4vForConditionalGeneration"}, {"GlmOcrForConditionalGeneration"}),
    .tensors = {glm4_tensors, nextn_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Glm4ForCausalLM", "glm4", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows,
                                         CONFIG_ROWS({"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count",
                                                      "attention.key_length"}))}),
    .keys = {base_keys,
             KEYS({"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_half}, {.emit = nextn_emit})},
    .vocabs = {&glm4_vocab},
    .add_dimensions = glm4_add_dimensions,
    .adjust = nextn_count_blocks,
};

/* GLM-4.5 to 4.7, the language models of GLM-4.5V and 4.6V, GLM-4.7-Flash, and Solar Open. conversion/glm.py. */

static const struct relation_row glm4moe_tensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {0},
};

static const struct key_row glm4moe_keys[] = {
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_half},
    {"expert_count", GGUF_U32, IF_PRESENT, "n_routed_experts"},
    {"expert_feed_forward_length", GGUF_U32, IF_PRESENT, "moe_intermediate_size"},
    {"expert_shared_count", GGUF_U32, IF_PRESENT, "n_shared_experts"},
    {"leading_dense_block_count", GGUF_U32, IF_PRESENT, "first_k_dense_replace"},
    {"expert_gating_func", GGUF_U32, ALWAYS, .value = 2}, /* sigmoid */
    {"expert_weights_scale", GGUF_F32, IF_PRESENT, "routed_scaling_factor"},
    {"expert_weights_norm", GGUF_BOOL, IF_PRESENT, "norm_topk_prob"},
    {.emit = nextn_emit_stated},
    {0},
};

static const struct config_row glm4moe_config_rows[] = {
    {"use_qk_norm", FROM_TENSOR, "blk.0.attn_q_norm.weight"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length"},
    {0},
};

/* Solar Open is GLM without biases and dense layers. */
static const struct config_form forms[] = {
    {"SolarOpenForCausalLM", "solar_open",
     "!tensor:blk.0.attn_q.bias !tensor:blk.0.attn_q_norm.weight !tensor:blk.0.ffn_gate.weight",
     CONFIG_TABLES(silu_rows, attention_bias_rows, glm4moe_config_rows)},
    {"Glm4MoeForCausalLM", "glm4_moe", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, glm4moe_config_rows)},
    {0},
};

const struct family glm4moe_family = {
    .name = "glm4moe",
    .summary = "GLM-4.5 to 4.7 MoE",
    .hf = FAMILY_NAMES({"Glm4MoeForCausalLM"}, {"Glm4vMoeForConditionalGeneration"}),
    .tensors = {glm4moe_tensors, qk_norm_tensors, router_tensors, expert_tensors, nextn_tensors, decoder_tensors},
    .forms = forms,
    .keys = {base_keys, glm4moe_keys},
    .exports_mtp = true,
    .mtp_since = MTP_OF_GLM45,
    .vocabs = {&glm_vocab},
    .add_dimensions = nextn_add_dimensions,
    .adjust = nextn_count_blocks,
};

const struct family solar_open_family = {
    .name = "solar-open",
    .architecture = "glm4moe",
    .summary = "Solar Open",
    .hf = FAMILY_NAMES({"SolarOpenForCausalLM"}),
    .tensors = {glm4moe_tensors, qk_norm_tensors, router_tensors, expert_tensors, nextn_tensors, decoder_tensors},
    .keys = {base_keys, glm4moe_keys},
    .vocabs = {&solar_vocab},
    .add_dimensions = nextn_add_dimensions,
    .adjust = nextn_count_blocks,
};

/* GLM-4.7-Flash: DeepSeek's architecture with GLM's tokenizer and a layer that predicts ahead. */
static const struct config_row glm4moelite_config_rows[] = {
    {"mlp_layer_types", FROM_LAYERS, "blk.{}.ffn_gate_inp.weight", "'sparse'|'dense'"},
    {"moe_intermediate_size", FROM_KEY, "expert_feed_forward_length"},
    {0},
};

const struct family glm4moelite_family = {
    .name = "glm4moelite",
    .architecture = "deepseek2",
    .summary = "GLM-4.7-Flash",
    .hf = FAMILY_NAMES({"Glm4MoeLiteForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.*", NULL, .when = "extra_layer"},
                        {"lm_head.weight", NULL, .when = "tie_word_embeddings"}),
                mla_tensors, router_tensors, expert_tensors, nextn_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Glm4MoeLiteForCausalLM", "glm4_moe_lite", NULL,
                           CONFIG_TABLES(silu_rows, deepseek_config_rows, glm4moelite_config_rows)}),
    .told_by = "key:nextn_predict_layers",
    .keys = {mla_first_keys, base_keys, mla_keys, KEYS({.emit = nextn_emit})},
    .exports_mtp = true,
    .vocabs = {&glm_vocab},
    .dimensions = {mla_dimensions},
    .add_dimensions = nextn_add_dimensions,
    .defaults = MLA_DEFAULTS,
    .adjust = nextn_count_blocks,
};

/* GLM-5 and DeepSeek V3.2: latent attention to tokens that an indexer chooses. conversion/glm.py, deepseek.py. */

static const struct relation_row glm_dsa_tensors[] = {
    {"lm_head.weight", NULL, .when = "tie_word_embeddings"},
    {"model.layers.{}.self_attn.indexer.wq_b", "blk.{}.indexer.attn_q_b"},
    {"model.layers.{}.self_attn.indexer.wk", "blk.{}.indexer.attn_k"},
    {"model.layers.{}.self_attn.indexer.k_norm", "blk.{}.indexer.k_norm"},
    {"model.layers.{}.self_attn.indexer.weights_proj", "blk.{}.indexer.proj"},
    {0},
};

static bool glm_dsa_compute_rotary(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double size, factor;
    if (!builder_number(builder, "qk_rope_head_dim", NAN, &size, error) ||
        !builder_number(builder, "rope.partial_rotary_factor", 1.0, &factor, error))
        return false;
    *ret_value = trunc(size * factor);
    return !isnan(size) || error_set(error, "config.json: qk_rope_head_dim is missing");
}

/* Sets the layers whose indexers see all tokens. */
static bool glm_dsa_emit_indexer_types(struct model_builder *builder, struct error *error)
{
    const struct json *types = hparams_get(builder->model->hparams, "indexer_types");
    struct buffer elements = {0};
    if (!json_is(types, JSON_ARRAY))
        return true;
    for (const struct json *type = json_first(types); type != NULL; type = json_next(type))
        buffer_append_le(&elements, json_string_is(type, "full"), 1);
    gguf_set_array(&builder->model->kvs, builder_key(builder, "attention.indexer.types"), GGUF_BOOL, json_count(types),
                   &elements);
    return true;
}

static const struct key_row glm_dsa_keys[] = {
    {.emit = nextn_emit_stated},
    {"attention.indexer.head_count", GGUF_U32, REQUIRED, "index_n_heads"},
    {"attention.indexer.key_length", GGUF_U32, REQUIRED, "index_head_dim"},
    {"attention.indexer.top_k", GGUF_U32, REQUIRED, "index_topk"},
    {0},
};

static const struct config_row glm_dsa_common_rows[] = {
    {"mlp_layer_types", FROM_LAYERS, "blk.{}.ffn_gate_inp.weight", "'sparse'|'dense'"},
    {"moe_intermediate_size", FROM_KEY, "expert_feed_forward_length"},
    {"scoring_func", FROM_TEXT, .text = "'sigmoid'"},
    {0},
};

const struct family glm_dsa_family = {
    .name = "glm-dsa",
    .summary = "GLM-5",
    .hf = FAMILY_NAMES({"GlmMoeDsaForCausalLM"}),
    .tensors = {glm_dsa_tensors, mla_tensors, router_tensors, expert_tensors, nextn_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"GlmMoeDsaForCausalLM", "glm_moe_dsa", NULL,
         CONFIG_TABLES(silu_rows, deepseek_config_rows, glm_dsa_common_rows,
                       CONFIG_ROWS({"indexer_types", FROM_LAYERS, "attention.indexer.types", "'full'|'shared'"}))}),
    .keys = {mla_first_keys, base_keys, mla_keys,
             KEYS({"rope.dimension_count", GGUF_U32, .compute = glm_dsa_compute_rotary}), glm_dsa_keys,
             KEYS({.emit = glm_dsa_emit_indexer_types})},
    .exports_mtp = true,
    .vocabs = {&glm_vocab},
    .dimensions = {mla_dimensions},
    .add_dimensions = nextn_add_dimensions,
    .defaults = MLA_DEFAULTS,
    .adjust = nextn_count_blocks,
};

const struct family deepseek32_family = {
    .name = "deepseek32",
    .summary = "DeepSeek V3.2",
    .hf = FAMILY_NAMES({"DeepseekV32ForCausalLM"}),
    .tensors = {glm_dsa_tensors, mla_tensors, router_tensors, expert_tensors, nextn_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"DeepseekV32ForCausalLM", "deepseek_v32", NULL,
                           CONFIG_TABLES(silu_rows, deepseek_config_rows, glm_dsa_common_rows)}),
    .keys = {mla_first_keys, base_keys, mla_keys, glm_dsa_keys},
    .exports_mtp = true,
    .vocabs = {&bpe_vocab},
    .dimensions = {mla_dimensions},
    .add_dimensions = nextn_add_dimensions,
    .defaults = MLA_DEFAULTS,
    .adjust = nextn_count_blocks,
};

/* GLM-5.3 Flash: delta attention, latent attention without positions to tokens that an indexer chooses, experts, and
 * hyper-connections. conversion/glm.py, Glm5NextModel. */

#define ATTENTION "model.layers.{}.self_attn."

static const struct relation_row glm5_next_tensors[] = {
    {"lm_head.weight", NULL, .when = "tie_word_embeddings"},
    {ATTENTION "A_log", "blk.{}.ssm_a", .parallel = "row", .map = &minus_exp},
    {ATTENTION "f_a_proj", "blk.{}.ssm_f_a"},
    {ATTENTION "f_b_proj", "blk.{}.ssm_f_b", .parallel = "row"},
    {ATTENTION "g_a_proj", "blk.{}.ssm_g_a"},
    {ATTENTION "g_b_proj", "blk.{}.ssm_g_b", .parallel = "row"},
    {ATTENTION "indexer.wq_b", "blk.{}.indexer.attn_q_b"},
    {ATTENTION "indexer.wk", "blk.{}.indexer.attn_k"},
    {ATTENTION "indexer.k_norm", "blk.{}.indexer.k_norm"},
    {ATTENTION "indexer.weights_proj", "blk.{}.indexer.proj"},
    {ATTENTION "indexer.index_kpool_compress_ape", "blk.{}.indexer_compressor_ape.weight"},
    {ATTENTION "indexer.index_kpool_compress_gate", "blk.{}.indexer_compressor_gate.weight"},
    {"model.layers.{}.hc_attn_fn", "blk.{}.hc_attn_fn.weight"},
    {"model.layers.{}.hc_attn_base", "blk.{}.hc_attn_base.weight"},
    {"model.layers.{}.hc_attn_scale", "blk.{}.hc_attn_scale.weight"},
    {"model.layers.{}.hc_ffn_fn", "blk.{}.hc_ffn_fn.weight"},
    {"model.layers.{}.hc_ffn_base", "blk.{}.hc_ffn_base.weight"},
    {"model.layers.{}.hc_ffn_scale", "blk.{}.hc_ffn_scale.weight"},
    {0},
};

/* Checks that the model is of the one kind that the converter knows. */
static bool check_kind(const struct hparams *hparams, struct error *error)
{
    uint64_t n_rotary, n_heads, n_linear;
    if (!hparams_count(hparams, "qk_rope_head_dim", 0, UINT32_MAX, &n_rotary, error) ||
        !hparams_count(hparams, HEAD_COUNT, 1, UINT32_MAX, &n_heads, error) ||
        !hparams_count(hparams, "linear_attn_config.num_heads", 1, UINT32_MAX, &n_linear, error))
        return false;
    if (!json_bool(hparams_get(hparams, "mla_use_nope"), false) || n_rotary != 0)
        return error_set(error, "config.json: mla_use_nope is not true, or qk_rope_head_dim is not 0: latent attention "
                                "with positions is not supported");
    if (!json_bool(hparams_get(hparams, "mhc"), true))
        return error_set(error, "config.json: mhc is false: models without hyper-connections are not supported");
    return n_heads == n_linear ||
           error_set(error, "config.json: linear_attn_config.num_heads is %llu, but num_attention_heads is %llu",
                     (unsigned long long)n_linear, (unsigned long long)n_heads);
}

static bool adjust(struct model_builder *builder, struct error *error)
{
    kda_look(builder);
    return kda_undo_saving(builder, ", 'mla_use_nope': true, 'scoring_func': 'sigmoid'", error) &&
           check_kind(builder->model->hparams, error) && nextn_count_blocks(builder, error);
}

static void glm5_next_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    nextn_add_dimensions(dimensions, hparams);
    dimensions_set(dimensions, "kv_head", dimensions_get(dimensions, "head"));
}

/* Removes what the common rows wrote from head_dim, and sets the key heads: one in layers with latent attention. */
static bool emit_heads(struct model_builder *builder, struct error *error)
{
    const struct json *types = hparams_get(builder->model->hparams, "layer_types");
    struct layers layers;
    gguf_kvs_remove(&builder->model->kvs, builder_key(builder, "attention.key_length"));
    gguf_kvs_remove(&builder->model->kvs, builder_key(builder, "attention.value_length"));
    if (!layers_new(builder, &layers, error))
        return false;
    uint64_t n = layers.n - dimensions_get(&builder->dimensions, "nextn");
    if (!json_is(types, JSON_ARRAY) || json_count(types) != n)
        return error_set(error, "config.json: layer_types has %zu layers, but num_hidden_layers is %llu",
                         json_count(types), (unsigned long long)n);
    const struct json *type = json_first(types);
    for (uint64_t i = 0; i < layers.n; i++, type = type != NULL ? json_next(type) : NULL)
        layers.values[i] = !json_string_is(type, "linear_attention");
    return layers_set_i32(builder, "attention.head_count_kv", &layers, error);
}

static bool glm5_next_emit_indexer_types(struct model_builder *builder, struct error *error)
{
    const struct json *types = hparams_get(builder->model->hparams, "indexer_types");
    struct layers layers;
    if (!json_is(types, JSON_ARRAY))
        return true;
    if (!layers_of_list(builder, types, &layers, error))
        return false;
    const struct json *type = json_first(types);
    for (uint64_t i = 0; i < layers.n; i++, type = json_next(type))
        layers.values[i] = json_string_is(type, "full");
    layers_set(builder, "attention.indexer.types", GGUF_BOOL, &layers);
    return true;
}

static bool emit_clamps(struct model_builder *builder, struct error *error)
{
    const struct json *limit = hparams_get(builder->model->hparams, "swiglu_limit");
    return limit == NULL || json_type(limit) == JSON_NULL || layers_set_clamps(builder, limit, error);
}

static const struct key_row glm5_next_keys[] = {
    {.emit = emit_heads},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-6},
    {.emit = nextn_emit},
    {"ssm.conv_kernel", GGUF_U32, REQUIRED, "linear_attn_config.short_conv_kernel_size"},
    {"kda.head_dim", GGUF_U32, REQUIRED, "linear_attn_config.head_dim"},
    {"kda.gate_lower_bound", GGUF_F32, IF_PRESENT, "linear_attn_config.gate_lower_bound"},
    {"attention.q_lora_rank", GGUF_U32, REQUIRED, "q_lora_rank"},
    {"attention.kv_lora_rank", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"rope.dimension_count", GGUF_U32, REQUIRED, "qk_rope_head_dim"},
    {"attention.key_length", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"attention.value_length", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"attention.key_length_mla", GGUF_U32, REQUIRED, "qk_nope_head_dim"},
    {"attention.value_length_mla", GGUF_U32, REQUIRED, "v_head_dim"},
    {"attention.indexer.head_count", GGUF_U32, REQUIRED, "index_n_heads"},
    {"attention.indexer.key_length", GGUF_U32, REQUIRED, "index_head_dim"},
    {"attention.indexer.top_k", GGUF_U32, REQUIRED, "index_topk"},
    {"attention.indexer.kpool", GGUF_U32, REQUIRED, "index_kpool"},
    {"attention.indexer.kpool_select_tail", GGUF_BOOL, OR_DEFAULT, "index_kpool_always_select_tail", 1},
    {.emit = glm5_next_emit_indexer_types},
    {"hyper_connection.count", GGUF_U32, REQUIRED, "hc_mult"},
    {"hyper_connection.sinkhorn_iterations", GGUF_U32, REQUIRED, "hc_sinkhorn_iters"},
    {"hyper_connection.epsilon", GGUF_F32, REQUIRED, "hc_eps"},
    {"leading_dense_block_count", GGUF_U32, REQUIRED, "first_k_dense_replace"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"expert_shared_count", GGUF_U32, REQUIRED, "n_shared_experts"},
    {"expert_weights_scale", GGUF_F32, REQUIRED, "routed_scaling_factor"},
    {"expert_weights_norm", GGUF_BOOL, REQUIRED, "norm_topk_prob"},
    {.emit = emit_clamps},
    {0},
};

/* Gives A_log, which checkpoints store in several shapes and with padding, one number for each head. */
static void flatten_decays(struct model_builder *builder)
{
    struct arena *arena = builder->model->arena;
    struct tensor_set *set = builder->model->tensors;
    uint64_t n_heads = dimensions_get(&builder->dimensions, "head"), numbers[PATTERN_NUMBERS];
    for (size_t i = 0; i < set->n_tensors; i++) {
        struct tensor *tensor = &tensor_set_edit(set)[i];
        if (!pattern_match("blk.{}.ssm_a", tensor->name, tensor->name_length, numbers))
            continue;
        const uint64_t length = tensor->view->n_elements;
        const struct view *flat = view_reshape(arena, tensor->view, 1, &length);
        *tensor = tensor_of_view(tensor->name, length > n_heads ? view_slice(arena, flat, 0, 0, n_heads, 1) : flat);
    }
}

/* Small parameters are exact in every output. */
static const struct stored_type stored_types[] = {{"blk.{}.hc_attn_fn.weight", &f32_dtype},
                                                  {"blk.{}.hc_ffn_fn.weight", &f32_dtype},
                                                  {"blk.{}.indexer_compressor_ape.weight", &f32_dtype},
                                                  {"blk.{}.indexer_compressor_gate.weight", &f32_dtype},
                                                  {0}};

/* Returns the delta attention's object; NULL: a key is missing. */
static const char *make_linear_attention(const struct config_material *material)
{
    char digits[JSON_FLOAT_TEXT];
    double n_heads, head_dim, kernel, bound;
    if (!config_number_of_layer(material, "attention.head_count", 0, &n_heads) ||
        !config_number_of_layer(material, "kda.head_dim", 0, &head_dim) ||
        !config_number_of_layer(material, "ssm.conv_kernel", 0, &kernel))
        return NULL;
    const char *line =
        gguf_get_f64(material->kvs, "glm5-next.kda.gate_lower_bound", &bound)
            ? arena_printf(material->arena, "    \"gate_lower_bound\": %s,\n", json_f32_text((float)bound, digits))
            : "";
    return arena_printf(material->arena,
                        "{\n%s    \"head_dim\": %.0f,\n    \"num_heads\": %.0f,\n    "
                        "\"short_conv_kernel_size\": %.0f\n  }",
                        line, head_dim, n_heads, kernel);
}

static const struct config_row glm5_next_config_rows[] = {
    {"num_key_value_heads", FROM_KEY, "attention.head_count"},
    {"layer_types", FROM_LAYERS, "attention.head_count_kv", "'full_attention'|'linear_attention'"},
    {"linear_attn_config", .make = make_linear_attention},
    {"mla_use_nope", FROM_TEXT, .text = "true"},
    {"mhc", FROM_TEXT, .text = "true"},
    {"qk_nope_head_dim", FROM_KEY, "attention.key_length_mla"},
    {"v_head_dim", FROM_KEY, "attention.value_length_mla"},
    {"head_dim", FROM_NOWHERE}, /* the converter has no use for it */
    {"mlp_layer_types", FROM_LAYERS, "blk.{}.ffn_gate_inp.weight", "'sparse'|'dense'"},
    {"n_routed_experts", FROM_KEY, "expert_count"},
    {"n_group", FROM_KEY, "expert_group_count", .text = "1"},
    {"topk_group", FROM_KEY, "expert_group_used_count", .text = "1"},
    {"scoring_func", .make = config_gating_function},
    {"indexer_types", FROM_LAYERS, "attention.indexer.types", "'full'|'shared'"},
    {"swiglu_limit", .make = layers_clamp},
    {0},
};

const struct family glm5_next_family = {
    .name = "glm5-next",
    .summary = "GLM-5.3 Flash",
    .since = 11292,
    .hf = FAMILY_NAMES({"Glm5NextForConditionalGeneration"}),
    .tensors = {glm5_next_tensors, kda_self_attention_tensors, mla_tensors, nextn_tensors, expert_tensors,
                router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Glm5NextForConditionalGeneration", "glm5_next_text", NULL,
                           CONFIG_TABLES(silu_rows, glm5_next_config_rows), HEADLESS_HALF_NOTE}),
    .keys = {base_keys, glm5_next_keys},
    .exports_mtp = true,
    .vocabs = {&glm_vocab},
    .stored_types = stored_types,
    .dimensions = {mla_dimensions},
    .add_dimensions = glm5_next_add_dimensions,
    .adjust = adjust,
    .arrange = flatten_decays,
};
