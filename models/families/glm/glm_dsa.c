/* GLM-5 and DeepSeek V3.2: latent attention to tokens that an indexer chooses. conversion/glm.py, deepseek.py. */
#include "models/families/deepseek/deepseek.h"
#include "models/families/drafts/nextn.h"

#include <math.h>

static const struct relation_row tensors[] = {
    {"lm_head.weight", NULL, .when = "tie_word_embeddings"},
    {"model.layers.{}.self_attn.indexer.wq_b", "blk.{}.indexer.attn_q_b"},
    {"model.layers.{}.self_attn.indexer.wk", "blk.{}.indexer.attn_k"},
    {"model.layers.{}.self_attn.indexer.k_norm", "blk.{}.indexer.k_norm"},
    {"model.layers.{}.self_attn.indexer.weights_proj", "blk.{}.indexer.proj"},
    {0},
};

static bool compute_rotary(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double size, factor;
    if (!builder_number(builder, "qk_rope_head_dim", NAN, &size, error) ||
        !builder_number(builder, "rope.partial_rotary_factor", 1.0, &factor, error))
        return false;
    *ret_value = trunc(size * factor);
    return !isnan(size) || error_set(error, "config.json: qk_rope_head_dim is missing");
}

/* Sets the layers whose indexers see all tokens. */
static bool emit_indexer_types(struct model_builder *builder, struct error *error)
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

static const struct key_row keys[] = {
    {.emit = nextn_emit_stated},
    {"attention.indexer.head_count", GGUF_U32, REQUIRED, "index_n_heads"},
    {"attention.indexer.key_length", GGUF_U32, REQUIRED, "index_head_dim"},
    {"attention.indexer.top_k", GGUF_U32, REQUIRED, "index_topk"},
    {0},
};

static const struct config_row common_rows[] = {
    {"mlp_layer_types", FROM_LAYERS, "blk.{}.ffn_gate_inp.weight", "'sparse'|'dense'"},
    {"moe_intermediate_size", FROM_KEY, "expert_feed_forward_length"},
    {"scoring_func", FROM_TEXT, .text = "'sigmoid'"},
    {0},
};

const struct family glm_dsa_family = {
    .name = "glm-dsa",
    .summary = "GLM-5",
    .hf = FAMILY_NAMES({"GlmMoeDsaForCausalLM"}),
    .tensors = {tensors, mla_tensors, router_tensors, expert_tensors, nextn_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"GlmMoeDsaForCausalLM", "glm_moe_dsa", NULL,
         CONFIG_TABLES(silu_rows, deepseek_config_rows, common_rows,
                       CONFIG_ROWS({"indexer_types", FROM_LAYERS, "attention.indexer.types", "'full'|'shared'"}))}),
    .keys = {mla_first_keys, base_keys, mla_keys, KEYS({"rope.dimension_count", GGUF_U32, .compute = compute_rotary}),
             keys, KEYS({.emit = emit_indexer_types})},
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
    .tensors = {tensors, mla_tensors, router_tensors, expert_tensors, nextn_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"DeepseekV32ForCausalLM", "deepseek_v32", NULL, CONFIG_TABLES(silu_rows, deepseek_config_rows, common_rows)}),
    .keys = {mla_first_keys, base_keys, mla_keys, keys},
    .exports_mtp = true,
    .vocabs = {&bpe_vocab},
    .dimensions = {mla_dimensions},
    .add_dimensions = nextn_add_dimensions,
    .defaults = MLA_DEFAULTS,
    .adjust = nextn_count_blocks,
};
