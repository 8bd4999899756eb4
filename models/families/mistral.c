/* Mistral Small 3.1 and its successors, and models in Mistral's own format. */
#include "models/families/deepseek/deepseek.h"
#include "models/families/llama/llama.h"
#include "models/families/shared.h"

/* Mistral Small 3.1 and later, Devstral, Magistral, Ministral 3: Llama's tensors under an architecture of their own.
 * conversion/mistral3.py. */

/* Sets the keys of Ministral 3, which extends its context by YaRN, and sharpens attention with its length. */
static bool emit_stretching(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[] = {
        {"rope.scaling.yarn_log_multiplier", GGUF_F32, REQUIRED, "rope.mscale_all_dim"},
        {"attention.temperature_scale", GGUF_F32, REQUIRED, "rope.llama_4_scaling_beta"},
        {0},
    };
    const struct hparams *hparams = builder->model->hparams;
    if (!json_string_is(hparams_get(hparams, "model_type"), "ministral3"))
        return true;
    if (!json_string_is(hparams_rope(hparams, "rope_type"), "yarn"))
        return error_set(error, "config.json: the rope_type of a ministral3 is not yarn");
    return builder_emit(builder, rows, error);
}

/* Only one of the two factors of attention is a key; if both are equal, as in all published models, they cancel out. */
static const struct config_row config_stretched_rows[] = {
    {"rope_scaling", FROM_NOWHERE},
    {"rope_theta", FROM_NOWHERE},
    {"rope_parameters", FROM_TEXT,
     .text = "{\n    'beta_fast': <rope.scaling.yarn_beta_fast>,\n    'beta_slow': <rope.scaling.yarn_beta_slow>,"
             "\n    'factor': <rope.scaling.factor>,\n    'llama_4_scaling_beta': <attention.temperature_scale>,"
             "\n    'mscale': <rope.scaling.yarn_log_multiplier>,"
             "\n    'mscale_all_dim': <rope.scaling.yarn_log_multiplier>,"
             "\n    'original_max_position_embeddings': <rope.scaling.original_context_length>,"
             "\n    'rope_theta': <rope.freq_base>,\n    'rope_type': 'yarn'\n  }"},
    {0},
};

const struct family mistral3_family = {
    .name = "mistral3",
    .summary = "Mistral Small 3.1, Devstral, Magistral, Ministral 3",
    .hf = FAMILY_NAMES({"Mistral3ForConditionalGeneration"}, {"Ministral3ForCausalLM"}),
    .tensors = {llama_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Ministral3ForCausalLM", "ministral3", "key:attention.temperature_scale",
                           CONFIG_TABLES(silu_rows, config_stretched_rows), HALF_NOTE},
                          {"MistralForCausalLM", "mistral", NULL, CONFIG_TABLES(silu_rows, no_window_rows), HALF_NOTE}),
    .dimensions = {llama_dimensions},
    .keys = {base_keys, llama_keys, KEYS({.emit = emit_stretching})},
    .vocabs = {&spm_vocab, &llama_hf_vocab, &bpe_vocab, &tekken_vocab},
    .add_extras = add_rope_freqs,
    .before_vocab = llama_before_vocab,
    .after_vocab = llama_after_vocab,
};

/* Mistral Small 4: DeepSeek's architecture, with stacked experts. conversion/mistral3.py. */

/* The last is transformers' class for the text model alone, which the converter does not know. */
static const struct family_name mistral4_names[] = {
    {"Mistral3ForConditionalGeneration"}, {"Ministral3ForCausalLM"}, {"Mistral4ForCausalLM"}, {0}};

static bool applies(const struct hparams *hparams)
{
    return json_string_is(hparams_get(hparams, "model_type"), "mistral4");
}

/* No key has the growth of attention with the position; all published models have the same. */
static const struct config_row config_rows[] = {
    {"head_dim", FROM_KEY, "attention.key_length_mla"},
    {"moe_intermediate_size", FROM_KEY, "expert_feed_forward_length"},
    {"rope_scaling.llama_4_scaling_beta", FROM_TEXT, .text = "0.1"},
    {"rope_scaling.partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length_mla"},
    {0},
};

const struct family mistral4_family = {
    .name = "mistral4",
    .summary = "Mistral Small 4",
    .hf = mistral4_names,
    .tensors = {TENSORS({"lm_head.weight", NULL, .when = "tie_word_embeddings"},
                        {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_up_exps.weight",
                         "expert (gate + up) c", "gate up"},
                        {"model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight", .parallel = "column"}),
                mla_tensors, router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Mistral4ForCausalLM", "mistral4", NULL,
                           CONFIG_TABLES(silu_rows, deepseek_config_rows, config_rows), HALF_NOTE}),
    .keys = {mla_first_keys, base_keys, mla_keys},
    .vocabs = {&bpe_vocab},
    .applies = applies,
    .dimensions = {mla_dimensions},
    .defaults = MLA_DEFAULTS,
};

/* Models in Mistral's own format. conversion/mistral.py, MistralModel.
 *
 * They are Llamas whose rotary rows are pairs already. Models that scale attention by position have an architecture of
 * their own. */

static const struct family_name mistral_format_names[] = {{"MistralModel"}, {0}};

/* Reports whether the file is Mistral's params.json, which names no class: transformers has one of that name, too. */
static bool is_params(const struct hparams *hparams)
{
    return json_get(hparams_raw(hparams), "architectures") == NULL;
}

static const struct relation_row mistral_format_tensors[] = {
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

static const struct key_row mistral_format_keys[] = {
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
    .hf = mistral_format_names,
    .tensors = {mistral_format_tensors},
    .keys = {base_keys, keys, mistral_format_keys},
    .vocabs = {&tekken_vocab, &mistral_spm_vocab},
    .applies = is_params,
};

const struct family mistral_scaled_family = {
    .name = "mistral-scaled",
    .architecture = "mistral3",
    .summary = "Mistral's own format, with position-scaled attention",
    .hf = mistral_format_names,
    .tensors = {mistral_format_tensors},
    .keys = {base_keys, keys, mistral_format_keys},
    .vocabs = {&tekken_vocab, &mistral_spm_vocab},
    .applies = is_scaled,
};

/* Models with experts in Mistral's own format: Mistral Large 3. They are DeepSeek's under other names; config_classes.c
 * has params.json's. conversion/mistral.py, MistralMoeModel. */

static const struct relation_row mistral_moe_tensors[] = {
    {"output.weight", NULL, .when = "tie_word_embeddings"},
    {"tok_embeddings", "token_embd", .parallel = "row"},
    {"norm", "output_norm"},
    {"output", "output", .parallel = "row"},
    {"layers.{}.attention_norm", "blk.{}.attn_norm"},
    {"layers.{}.attention.wq_a", "blk.{}.attn_q_a"},
    {"layers.{}.attention.q_a_norm", "blk.{}.attn_q_a_norm"},
    {"layers.{}.attention.wq_b", "blk.{}.attn_q_b", "(head d) ...", "head"},
    {"layers.{}.attention.wq", "blk.{}.attn_q", "(head d) ...", "head"},
    {"layers.{}.attention.wkv_a_with_mqa", "blk.{}.attn_kv_a_mqa"},
    {"layers.{}.attention.kv_a_norm", "blk.{}.attn_kv_a_norm"},
    {"layers.{}.attention.wkv_b", "blk.{}.attn_k_b, blk.{}.attn_v_b",
     "(kv_head (nope + value)) c -> kv_head c nope, kv_head value c", "kv_head"},
    {"layers.{}.attention.wo", "blk.{}.attn_output", .parallel = "column"},
    {"layers.{}.ffn_norm", "blk.{}.ffn_norm"},
    {"layers.{}.feed_forward.w1", "blk.{}.ffn_gate", .parallel = "row"},
    {"layers.{}.feed_forward.w2", "blk.{}.ffn_down", .parallel = "column"},
    {"layers.{}.feed_forward.w3", "blk.{}.ffn_up", .parallel = "row"},
    {"layers.{}.gate", "blk.{}.ffn_gate_inp"},
    {"layers.{}.shared_experts.w1", "blk.{}.ffn_gate_shexp", .parallel = "row"},
    {"layers.{}.shared_experts.w2", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {"layers.{}.shared_experts.w3", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {"layers.{}.experts.{expert}.w2", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"layers.{}.experts.{expert}.w1", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {"layers.{}.experts.{expert}.w3", "blk.{}.ffn_up_exps", .parallel = "row"},
    {0},
};

const struct family mistral_moe_family = {
    .name = "mistral-moe",
    .architecture = "deepseek2",
    .summary = "Mistral's own format, MoE",
    .hf = FAMILY_NAMES({"MistralMoeModel"}),
    .tensors = {mistral_moe_tensors},
    .keys = {mla_first_keys, base_keys, mla_keys, mistral_format_keys,
             KEYS({"attention.temperature_length", GGUF_U32, REQUIRED, "yarn.original_max_position_embeddings"},
                  {"rope.scaling.yarn_log_multiplier", GGUF_F32, ALWAYS, .value = 0.1})},
    .vocabs = {&tekken_vocab, &mistral_spm_vocab},
    .dimensions = {mla_dimensions},
    .defaults = MLA_DEFAULTS,
};
