/* Nemotron 4, Minitron. conversion/nemotron.py. */
#include "models/families/shared.h"

#include <math.h>

/* Norms are stored minus one. */
static const struct relation_row tensors[] = {
    {"model.norm.weight", "output_norm.weight", .map = &plus_one},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", .map = &plus_one},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight", .map = &plus_one},
    {0},
};

static bool emit_scaling(struct model_builder *builder, struct error *error)
{
    double factor, of_rope;
    if (!builder_number(builder, "factor", 0, &factor, error) ||
        !builder_number(builder, "rope.factor", NAN, &of_rope, error))
        return false;
    if (factor == 0)
        factor = of_rope;
    gguf_set_text(&builder->model->kvs, builder_key(builder, "rope.scaling.type"), isnan(factor) ? "none" : "linear");
    if (!isnan(factor))
        gguf_set_f32(&builder->model->kvs, builder_key(builder, "rope.scaling.factor"), factor);
    return true;
}

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'relu2'"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length"},
    {0},
};

const struct family nemotron_family = {
    .name = "nemotron",
    .summary = "Nemotron 4, Minitron",
    .hf = FAMILY_NAMES({"NemotronForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"NemotronForCausalLM", "nemotron", NULL, CONFIG_TABLES(attention_bias_rows, mlp_bias_rows, config_rows)}),
    .keys = {base_keys,
             KEYS({"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
                  {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED,
                   "layer_norm_eps|layer_norm_epsilon|norm_epsilon|norm_eps"},
                  {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_hidden}, {.emit = emit_scaling})},
    .vocabs = {&spm_vocab},
    .defaults = "{'partial_rotary_factor': 0.5}",
    .keys_after_vocab = KEYS({".tokenizer.ggml.padding_token_id", GGUF_U32, ALWAYS, .value = 0},
                             {".tokenizer.ggml.unknown_token_id", GGUF_U32, ALWAYS, .value = 1}),
};
