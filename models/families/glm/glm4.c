/* GLM-4-0414, and the language models of GLM-4.1V and GLM-OCR. conversion/glm.py. */
#include "models/families/drafts/nextn.h"

#include <string.h>

/* Multimodal models have their rotary rows in pairs, followed by rows that do not rotate. */
#define QUERY_PAIRS "(head (pair half + rest)) ... -> (head (half pair + rest)) ..."
#define KEY_PAIRS   "(kv_head (pair half + rest)) ... -> (kv_head (half pair + rest)) ..."

static const struct relation_row tensors[] = {
    {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", QUERY_PAIRS, "head", .when = "mrope"},
    {"model.layers.{}.self_attn.k_proj", "blk.{}.attn_k", KEY_PAIRS, "kv_head", .when = "mrope"},
    {"model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up", "(gate + up) ...", "gate up"},
    {"model.layers.{}.post_self_attn_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.post_mlp_layernorm", "blk.{}.post_ffw_norm"},
    {0},
};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
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
    .tensors = {tensors, nextn_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Glm4ForCausalLM", "glm4", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows,
                                         CONFIG_ROWS({"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count",
                                                      "attention.key_length"}))}),
    .keys = {base_keys,
             KEYS({"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_half}, {.emit = nextn_emit})},
    .vocabs = {&glm4_vocab},
    .add_dimensions = add_dimensions,
    .adjust = nextn_count_blocks,
};
