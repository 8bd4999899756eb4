/* Models in Mistral's own format. conversion/mistral.py, MistralModel.
 *
 * They are Llamas whose rotary rows are pairs already. Models that scale attention by position have an architecture of
 * their own. */
#include "models/families/mistral/mistral_format.h"
#include "models/families/llama/llama.h"

static const struct family_name names[] = {{"MistralModel"}, {0}};

static const struct relation_row tensors[] = {
    {"tok_embeddings", "token_embd", .parallel = "row"},
    {"norm", "output_norm"},
    {"output", "output", .parallel = "row"},
    {"layers.{}.attention.wq", "blk.{}.attn_q", .parallel = "row"},
    {"layers.{}.attention.wk", "blk.{}.attn_k", .parallel = "row"},
    {"layers.{}.attention.wv", "blk.{}.attn_v", .parallel = "row"},
    {"layers.{}.attention.wo", "blk.{}.attn_output", .parallel = "column"},
    {"layers.{}.attention_norm", "blk.{}.attn_norm"},
    {"layers.{}.feed_forward.w1", "blk.{}.ffn_gate", .parallel = "row"},
    {"layers.{}.feed_forward.w2", "blk.{}.ffn_down", .parallel = "column"},
    {"layers.{}.feed_forward.w3", "blk.{}.ffn_up", .parallel = "row"},
    {"layers.{}.ffn_norm", "blk.{}.ffn_norm"},
    {0},
};

static const struct key_row yarn_keys[] = {
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "yarn"},
    {"rope.scaling.factor", GGUF_F32, REQUIRED, "yarn.factor"},
    {"rope.scaling.yarn_beta_fast", GGUF_F32, REQUIRED, "yarn.beta"},
    {"rope.scaling.yarn_beta_slow", GGUF_F32, REQUIRED, "yarn.alpha"},
    {0},
};

static const struct key_row yarn_context_keys[] = {
    {"rope.scaling.original_context_length", GGUF_U32, REQUIRED, "yarn.original_max_position_embeddings"}, {0}};

static bool emit_yarn(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    if (!json_is(hparams_get(hparams, "yarn"), JSON_OBJECT))
        return true;
    if (!builder_emit(builder, yarn_keys, error))
        return false;
    gguf_set_f32(&builder->model->kvs, builder_key(builder, "rope.scaling.yarn_log_multiplier"),
                 json_bool(hparams_get(hparams, "yarn.apply_scale"), true) ? 0 : 1);
    return builder_emit(builder, yarn_context_keys, error);
}

const struct key_row mistral_format_keys[] = {
    {.emit = emit_yarn},
    {"attention.temperature_scale", GGUF_F32, IF_PRESENT, "llama_4_scaling.beta"},
    {0},
};

static const struct key_row keys[] = {{"rope.dimension_count", GGUF_U32, .compute = compute_head_dim}, {0}};

static bool is_scaled(const struct hparams *hparams)
{
    return json_is(hparams_get(hparams, "llama_4_scaling"), JSON_OBJECT);
}

const struct family mistral_llama_family = {
    .name = "mistral-llama",
    .architecture = "llama",
    .summary = "Mistral's own format",
    .hf = names,
    .tensors = {tensors},
    .keys = {base_keys, keys, mistral_format_keys},
    .vocabs = {&tekken_vocab, &mistral_spm_vocab},
};

const struct family mistral_scaled_family = {
    .name = "mistral-scaled",
    .architecture = "mistral3",
    .summary = "Mistral's own format, with position-scaled attention",
    .hf = names,
    .tensors = {tensors},
    .keys = {base_keys, keys, mistral_format_keys},
    .vocabs = {&tekken_vocab, &mistral_spm_vocab},
    .applies = is_scaled,
};
