/* GLM-5 and DeepSeek V3.2: latent attention to the tokens that an indexer chooses. conversion/glm.py, deepseek.py. */
#include "models/families/deepseek.h"
#include "models/families/nextn.h"

#include <math.h>

static const struct family_name glm_names[] = {{"GlmMoeDsaForCausalLM"}, {0}};
static const struct family_name deepseek_names[] = {{"DeepseekV32ForCausalLM"}, {0}};

static const struct relation_row tensors[] = {
    {"lm_head.weight", NULL, .when = "tie_word_embeddings"},
    {"model.layers.{}.self_attn.indexer.wq_b", "blk.{}.indexer.attn_q_b"},
    {"model.layers.{}.self_attn.indexer.wk", "blk.{}.indexer.attn_k"},
    {"model.layers.{}.self_attn.indexer.k_norm", "blk.{}.indexer.k_norm"},
    {"model.layers.{}.self_attn.indexer.weights_proj", "blk.{}.indexer.proj"},
    {0},
};

static bool compute_rotary(const struct draft *draft, double *ret_value, struct error *error)
{
    double size, factor;
    if (!draft_number(draft, "qk_rope_head_dim", NAN, &size, error) ||
        !draft_number(draft, "rope.partial_rotary_factor", 1.0, &factor, error))
        return false;
    *ret_value = trunc(size * factor);
    return !isnan(size) || error_set(error, "config.json: qk_rope_head_dim is missing");
}

/* Which layers' indexers see all. */
static bool emit_indexer_types(struct draft *draft, struct error *error)
{
    const struct json *types = hparams_get(draft->model->hparams, "indexer_types");
    struct buffer elements = {0};
    (void)error;
    if (!json_is(types, JSON_ARRAY))
        return true;
    for (const struct json *type = json_first(types); type != NULL; type = json_next(type))
        buffer_append_le(&elements, json_string_is(type, "full"), 1);
    gguf_set_array(&draft->model->kvs, draft_key(draft, "attention.indexer.types"), GGUF_BOOL, json_count(types),
                   &elements);
    return true;
}

static const struct key_row rotary_keys[] = {{"rope.dimension_count", GGUF_U32, .compute = compute_rotary}, {0}};
static const struct key_row types_keys[] = {{.emit = emit_indexer_types}, {0}};

static const struct key_row keys[] = {
    {"nextn_predict_layers", GGUF_U32, IF_PRESENT, "num_nextn_predict_layers"},
    {"attention.indexer.head_count", GGUF_U32, REQUIRED, "index_n_heads"},
    {"attention.indexer.key_length", GGUF_U32, REQUIRED, "index_head_dim"},
    {"attention.indexer.top_k", GGUF_U32, REQUIRED, "index_topk"},
    {0},
};

static void add_facts(struct facts *facts, const struct hparams *hparams)
{
    mla_add_facts(facts, hparams);
    nextn_add_facts(facts, hparams);
}

static bool adjust(struct draft *draft, struct error *error)
{
    return mla_adjust(draft, error) && nextn_count_blocks(draft, error);
}

#define CONFIG_ROWS                                                                                                    \
    DEEPSEEK_CONFIG_ROWS, {"mlp_layer_types", FROM_LAYERS, "blk.{}.ffn_gate_inp.weight", "'sparse'|'dense'"},          \
        {"intermediate_size", FROM_KEY, "feed_forward_length"},                                                        \
        {"moe_intermediate_size", FROM_KEY, "expert_feed_forward_length"},                                             \
        {"n_routed_experts", FROM_KEY, "expert_count"}, {"num_local_experts", FROM_NOWHERE},                           \
    {                                                                                                                  \
        "scoring_func", FROM_TEXT, .text = "'sigmoid'"                                                                 \
    }

static const struct config_row glm_rows[] = {
    CONFIG_ROWS,
    {"indexer_types", FROM_LAYERS, "attention.indexer.types", "'full'|'shared'"},
    {0},
};

static const struct config_row deepseek_rows[] = {CONFIG_ROWS, {0}};

static const struct config_form glm_forms[] = {{"GlmMoeDsaForCausalLM", "glm_moe_dsa", NULL, glm_rows}, {0}};
static const struct config_form deepseek_forms[] = {{"DeepseekV32ForCausalLM", "deepseek_v32", NULL, deepseek_rows},
                                                    {0}};

const struct family glm_dsa_family = {
    .name = "glm-dsa",
    .summary = "GLM-5",
    .hf = glm_names,
    .tensors = {tensors, mla_tensors, deepseek_moe_tensors, deepseek_expert_tensors, nextn_tensors, decoder_tensors},
    .forms = glm_forms,
    .keys = {base_keys, mla_keys, rotary_keys, keys, types_keys},
    .vocabs = {&glm_vocab},
    .add_facts = add_facts,
    .adjust = adjust,
};

const struct family deepseek32_family = {
    .name = "deepseek32",
    .summary = "DeepSeek V3.2",
    .hf = deepseek_names,
    .tensors = {tensors, mla_tensors, deepseek_moe_tensors, deepseek_expert_tensors, nextn_tensors, decoder_tensors},
    .forms = deepseek_forms,
    .keys = {base_keys, mla_keys, keys},
    .vocabs = {&bpe_vocab},
    .add_facts = add_facts,
    .adjust = adjust,
};
