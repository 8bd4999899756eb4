/* Decoders with experts that differ from the decoder of shared.h in a few tensors and keys. */
#include "models/families/layers.h"
#include "models/families/llama/llama.h"
#include "models/families/shared.h"
#include "text/json_write.h"

#include <math.h>

/* Trinity. conversion/afmoe.py. */

static const struct relation_row afmoe_tensors[] = {
    {"model.layers.{}.self_attn.gate_proj", "blk.{}.attn_gate", .parallel = "row"},
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.pre_mlp_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.post_mlp_layernorm", "blk.{}.post_ffw_norm"},
    {"model.layers.{}.mlp.router.gate", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.mlp.expert_bias", "blk.{}.exp_probs_b.bias"},
    {0},
};

static const struct key_row afmoe_keys[] = {
    {"expert_shared_count", GGUF_U32, IF_PRESENT, "num_shared_experts"},
    {"expert_feed_forward_length", GGUF_U32, IF_PRESENT, "moe_intermediate_size"},
    {"leading_dense_block_count", GGUF_U32, IF_PRESENT, "num_dense_layers"},
    {"expert_weights_norm", GGUF_BOOL, IF_PRESENT, "route_norm"},
    {"expert_weights_scale", GGUF_F32, IF_PRESENT, "route_scale"},
    {"attention.sliding_window", GGUF_U32, IF_PRESENT, "sliding_window"},
    {0},
};

/* All released models scale their embeddings, and have the same layers with full attention. */
static const struct config_row afmoe_config_rows[] = {
    {"global_attn_every_n_layers", FROM_TEXT, .text = "4"},
    {"mup_enabled", FROM_TEXT, .text = "true"},
    {0},
};

const struct family afmoe_family = {
    .name = "afmoe",
    .summary = "Trinity",
    .hf = FAMILY_NAMES({"AfmoeForCausalLM"}),
    .tensors = {afmoe_tensors, qk_norm_tensors, expert_gate_first_tensors, router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"AfmoeForCausalLM", "afmoe", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, num_experts_rows, afmoe_config_rows)}),
    .keys = {base_keys, llama_keys, afmoe_keys},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
};

/* DBRX. conversion/dbrx.py. Its router is of the output's type, as all matrices are. */

#define DBRX_BLOCK "transformer.blocks.{}."

static const struct relation_row dbrx_tensors[] = {
    {"transformer.norm_f", "output_norm"},
    {DBRX_BLOCK "norm_attn_norm.norm_1", "blk.{}.attn_norm"},
    {DBRX_BLOCK "norm_attn_norm.attn.Wqkv", "blk.{}.attn_qkv", "(head d + kv_head k + kv_head v) ...", "head kv_head"},
    {DBRX_BLOCK "norm_attn_norm.attn.out_proj", "blk.{}.attn_output", .parallel = "column"},
    {DBRX_BLOCK "norm_attn_norm.norm_2", "blk.{}.attn_output_norm"},
    {DBRX_BLOCK "ffn.router.layer", "blk.{}.ffn_gate_inp"},
    {DBRX_BLOCK "ffn.experts.mlp.w1", "blk.{}.ffn_gate_exps.weight", "(expert f) c -> expert f c", "f"},
    {DBRX_BLOCK "ffn.experts.mlp.v1", "blk.{}.ffn_up_exps.weight", "(expert f) c -> expert f c", "f"},
    {DBRX_BLOCK "ffn.experts.mlp.w2", "blk.{}.ffn_down_exps.weight", "(expert f) c -> expert c f", "f"},
    {0},
};

static const struct key_row dbrx_keys[] = {
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"context_length", GGUF_U32, REQUIRED, "max_seq_len"},
    {"embedding_length", GGUF_U32, REQUIRED, "d_model"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "ffn_config.ffn_hidden_size"},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_heads"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "attn_config.kv_n_heads"},
    {"rope.freq_base", GGUF_F32, REQUIRED, "attn_config.rope_theta"},
    {"attention.clamp_kqv", GGUF_F32, REQUIRED, "attn_config.clip_qkv"},
    {"expert_count", GGUF_U32, REQUIRED, "ffn_config.moe_num_experts"},
    {"expert_used_count", GGUF_U32, REQUIRED, "ffn_config.moe_top_k"},
    {"attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-5},
    FILE_TYPE_KEY,
    {0},
};

static const struct config_row dbrx_config_rows[] = {
    {"attn_config", FROM_TEXT,
     .text = "{\n    'clip_qkv': <attention.clamp_kqv>,\n    'kv_n_heads': <attention.head_count_kv>,"
             "\n    'rope_theta': <rope.freq_base>\n  }"},
    {"ffn_config", FROM_TEXT,
     .text = "{\n    'ffn_hidden_size': <feed_forward_length>,\n    'moe_num_experts': <expert_count>,"
             "\n    'moe_top_k': <expert_used_count>\n  }"},
    {0},
};

const struct family dbrx_family = {
    .name = "dbrx",
    .summary = "DBRX",
    .hf = FAMILY_NAMES({"DbrxForCausalLM"}),
    .tensors = {dbrx_tensors, gpt_tensors},
    .forms = CONFIG_FORMS({"DbrxForCausalLM", "dbrx", NULL, CONFIG_TABLES(dbrx_config_rows)}),
    .keys = {dbrx_keys},
    .vocabs = {&bpe_vocab},
    .matrices_alike = true,
    .dimensions = {DIMENSIONS({"kv_head", "attn_config.kv_n_heads", .kept = true},
                              {"expert", "ffn_config.moe_num_experts", .kept = true})},
};

/* gpt-oss, conversion/gpt_oss.py. */

#define EXPERTS "model.layers.{}.mlp.experts."

static const struct relation_row gpt_oss_tensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.self_attn.sinks", "blk.{}.attn_sinks.weight", .parallel = "row"},
    {"model.layers.{}.mlp.router", "blk.{}.ffn_gate_inp"},
    {EXPERTS "down_proj_bias", "blk.{}.ffn_down_exps.bias"},
    {EXPERTS "gate_up_proj_bias", "blk.{}.ffn_gate_exps.bias, blk.{}.ffn_up_exps.bias",
     "e (f (even + odd)) -> e (f even), e (f odd)", "f"},
    {EXPERTS "down_proj", "blk.{}.ffn_down_exps.weight", "e f c -> e c f", "f"},
    {EXPERTS "gate_up_proj", "blk.{}.ffn_gate_exps.weight, blk.{}.ffn_up_exps.weight",
     "e c (f (even + odd)) -> e (f even) c, e (f odd) c", "f"},
    {0},
};

static const struct config_row gpt_oss_config_rows[] = {
    {"swiglu_limit", FROM_TEXT, .text = "7.0"},
    {"attention_bias", FROM_TEXT, .text = "true"},
    {"rope_scaling.truncate", FROM_TEXT, .text = "false"},
    {0},
};

const struct family gpt_oss_family = {
    .name = "gpt-oss",
    .summary = "gpt-oss",
    .hf = FAMILY_NAMES({"GptOssForCausalLM"}),
    .tensors = {gpt_oss_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"GptOssForCausalLM", "gpt_oss", NULL, CONFIG_TABLES(silu_rows, gpt_oss_config_rows)}),
    .keys = {base_keys, KEYS({"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"},
                             {"expert_feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"})},
    .vocabs = {&bpe_vocab},
};

/* Grok 1 and 2. conversion/grok.py. */

#define LAYER "transformer.decoder_layer.{}."

static const struct relation_row first_tensors[] = {
    {"transformer.in_out_embed", "token_embd", .parallel = "row"},
    {"transformer.rms_norm", "output_norm"},
    {LAYER "rms_norm", "blk.{}.attn_norm"},
    {LAYER "multi_head_attention.query", "blk.{}.attn_q", "(head d) ...", "head"},
    {LAYER "multi_head_attention.key", "blk.{}.attn_k", "(kv_head d) ...", "kv_head"},
    {LAYER "multi_head_attention.value", "blk.{}.attn_v", "(kv_head d) ...", "kv_head"},
    {LAYER "multi_head_attention.linear", "blk.{}.attn_output", .parallel = "column"},
    {LAYER "rms_norm_1", "blk.{}.attn_output_norm"},
    {LAYER "rms_norm_2", "blk.{}.ffn_norm"},
    {LAYER "rms_norm_3", "blk.{}.layer_output_norm"},
    {LAYER "router", "blk.{}.ffn_gate_inp"},
    {LAYER "moe.{expert}.linear", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {LAYER "moe.{expert}.linear_1", "blk.{}.ffn_down_exps", .parallel = "column"},
    {LAYER "moe.{expert}.linear_v", "blk.{}.ffn_up_exps", .parallel = "row"},
    {0},
};

/* Sets the rope's scaling; "original" also means YaRN. */
static bool emit_rope_scaling(struct model_builder *builder, struct error *error)
{
    static const struct key_row grok_keys[] = {
        {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "yarn"},
        {"rope.scaling.factor", GGUF_F32, REQUIRED, "scaling_factor"},
        {"rope.scaling.original_context_length", GGUF_U32, REQUIRED, "original_max_position_embeddings"},
        {"rope.scaling.yarn_ext_factor", GGUF_F32, REQUIRED, "extrapolation_factor"},
        {"rope.scaling.yarn_attn_factor", GGUF_F32, REQUIRED, "attn_factor"},
        {"rope.scaling.yarn_beta_fast", GGUF_F32, REQUIRED, "beta_fast"},
        {"rope.scaling.yarn_beta_slow", GGUF_F32, REQUIRED, "beta_slow"},
        {0},
    };
    const struct json *type = hparams_get(builder->model->hparams, "rope_type");
    bool is_yarn = json_string_is(type, "yarn") || json_string_is(type, "original");
    return !is_yarn || builder_emit(builder, grok_keys, error);
}

static bool compute_output_scale(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double head_dim;
    if (!builder_number(builder, "attn_output_multiplier", NAN, ret_value, error))
        return false;
    if (!isnan(*ret_value))
        return true;
    if (!compute_head_dim(builder, &head_dim, error))
        return false;
    *ret_value = pow(head_dim, -0.5);
    return true;
}

static const struct key_row grok_keys[] = {
    {"attn_logit_softcapping", GGUF_F32, OR_DEFAULT, "attn_logit_softcapping", .value = 30},
    {"router_logit_softcapping", GGUF_F32, OR_DEFAULT, "router_logit_softcapping", .value = 30},
    {"final_logit_softcapping", GGUF_F32, IF_TRUE, "final_logit_softcapping"},
    {"expert_feed_forward_length", GGUF_U32, IF_PRESENT, "moe_intermediate_size"},
    {.emit = emit_rope_scaling},
    {"attention.temperature_length", GGUF_U32, IF_TRUE, "attn_temperature_len"},
    {"attention.output_scale", GGUF_F32, .compute = compute_output_scale},
    {"embedding_scale", GGUF_F32, REQUIRED, "embedding_multiplier_scale"},
    {"logit_scale", GGUF_F32, REQUIRED, "output_multiplier_scale"},
    {0},
};

const struct family grok_family = {
    .name = "grok",
    .summary = "Grok 1 and 2",
    .hf = FAMILY_NAMES({"GrokForCausalLM"}, {"Grok1ForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.pre_attn_norm", "blk.{}.attn_norm"},
                        {"model.layers.{}.post_attn_norm", "blk.{}.attn_output_norm"},
                        {"model.layers.{}.pre_moe_norm", "blk.{}.ffn_norm"},
                        {"model.layers.{}.post_moe_norm", "blk.{}.post_ffw_norm"}),
                sparse_moe_tensors, decoder_tensors, first_tensors},
    .keys = {base_keys, grok_keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
};

/* SmallThinker. conversion/smallthinker.py. */

static const struct relation_row smallthinker_tensors[] = {
    {"model.layers.{}.block_sparse_moe.experts.{expert}.down", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"model.layers.{}.block_sparse_moe.experts.{expert}.gate", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {"model.layers.{}.block_sparse_moe.experts.{expert}.up", "blk.{}.ffn_up_exps", .parallel = "row"},
    {"model.layers.{}.block_sparse_moe.primary_router", "blk.{}.ffn_gate_inp"},
    {0},
};

static bool compute_gating(const struct model_builder *builder, double *ret_value, struct error *error)
{
    enum { SOFTMAX = 1, SIGMOID = 2 };
    *ret_value =
        json_bool(hparams_get(builder->model->hparams, "moe_primary_router_apply_softmax"), false) ? SOFTMAX : SIGMOID;
    return true;
}

static bool emit_window(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[] = {{"attention.sliding_window", GGUF_U32, IF_TRUE, "sliding_window_size"}, {0}};
    const struct json *layout = hparams_get(builder->model->hparams, "sliding_window_layout");
    for (const struct json *item = json_is(layout, JSON_ARRAY) ? json_first(layout) : NULL; item != NULL;
         item = json_next(item)) {
        double slides;
        if (json_double(item, &slides) && slides != 0)
            return builder_emit(builder, rows, error);
    }
    return true;
}

static const struct key_row smallthinker_keys[] = {
    {"expert_count", GGUF_U32, IF_PRESENT, "num_experts|moe_num_primary_experts"},
    {"expert_used_count", GGUF_U32, IF_PRESENT, "num_experts_per_tok|moe_num_active_primary_experts"},
    {"expert_feed_forward_length", GGUF_U32, IF_PRESENT, "moe_ffn_hidden_size"},
    {"feed_forward_length", GGUF_U32, IF_PRESENT, "moe_ffn_hidden_size"},
    {"expert_gating_func", GGUF_U32, .compute = compute_gating},
    {.emit = emit_window},
    {0},
};

/* Every fourth layer, from the first on, has full attention and no positions; the others have a window. */
static const char *make_layout(const struct config_material *material)
{
    struct buffer out = {0};
    struct json_writer writer = {.out = &out, .letters = JSON_ASCII};
    double window;
    bool has_window = config_number_of_layer(material, "attention.sliding_window", 0, &window);
    json_begin_array(&writer, NULL);
    json_keep_line(&writer);
    for (uint64_t i = 0; i < material->n_layers && i < MAX_LISTED_LAYERS; i++)
        json_put_number(&writer, NULL, has_window && i % 4 != 0);
    json_end(&writer);
    const char *list = arena_strndup(material->arena, (const char *)out.bytes, out.length);
    buffer_free(&out);
    return list;
}

static const char *make_softmax(const struct config_material *material)
{
    enum { SOFTMAX = 1 };
    double function;
    return config_number_of_layer(material, "expert_gating_func", 0, &function) && function == SOFTMAX ? "true"
                                                                                                       : "false";
}

static const struct config_row smallthinker_config_rows[] = {
    {"moe_num_primary_experts", FROM_KEY, "expert_count"},
    {"moe_num_active_primary_experts", FROM_KEY, "expert_used_count"},
    {"moe_primary_router_apply_softmax", .make = make_softmax},
    {"sliding_window_layout", .make = make_layout},
    {0},
};

const struct family smallthinker_family = {
    .name = "smallthinker",
    .summary = "SmallThinker",
    .hf = FAMILY_NAMES({"SmallThinkerForCausalLM"}),
    .tensors = {smallthinker_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"SmallThinkerForCausalLM", "smallthinker", NULL, CONFIG_TABLES(smallthinker_config_rows), OWN_CLASS_NOTE}),
    .keys = {base_keys, smallthinker_keys},
    .vocabs = {&bpe_vocab},
    .dimensions = {DIMENSIONS({"expert", "num_experts|moe_num_primary_experts", .kept = true})},
};

/* LLaDA, a diffusion language model, dense and with experts. conversion/llada.py. */

#define LLADA_BLOCK "model.transformer.blocks.{}."

static const struct relation_row llada_tensors[] = {
    {"model.transformer.wte", "token_embd", .parallel = "row"},
    {"model.transformer.ln_f", "output_norm"},
    {"model.transformer.ff_out", "output", .parallel = "row"},
    {LLADA_BLOCK "attn_norm", "blk.{}.attn_norm"},
    {LLADA_BLOCK "q_proj", "blk.{}.attn_q", QUERY_ROTARY, "head"},
    {LLADA_BLOCK "k_proj", "blk.{}.attn_k", KEY_ROTARY, "kv_head"},
    {LLADA_BLOCK "v_proj", "blk.{}.attn_v", "(kv_head d) ...", "kv_head"},
    {LLADA_BLOCK "attn_out", "blk.{}.attn_output", .parallel = "column"},
    {LLADA_BLOCK "ff_norm", "blk.{}.ffn_norm"},
    {LLADA_BLOCK "ff_proj", "blk.{}.ffn_gate", .parallel = "row"},
    {LLADA_BLOCK "up_proj", "blk.{}.ffn_up", .parallel = "row"},
    {LLADA_BLOCK "ff_out", "blk.{}.ffn_down", .parallel = "column"},
    {0},
};

#define DIFFUSION                                                                                                      \
    {"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},                                                               \
    {                                                                                                                  \
        ".diffusion.shift_logits", GGUF_BOOL, ALWAYS, .value = 0                                                       \
    }

static const struct key_row llada_keys[] = {
    {.emit = emit_pooling_type},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_head_dim},
    {"context_length", GGUF_U32, OR_DEFAULT, "max_sequence_length", 4096},
    {"embedding_length", GGUF_U32, OR_DEFAULT, "d_model", 4096},
    {"feed_forward_length", GGUF_U32, OR_DEFAULT, "mlp_hidden_size", 12288},
    DIFFUSION,
    {".tokenizer.ggml.mask_token_id", GGUF_U32, IF_PRESENT, "mask_token_id"},
    {0},
};

const struct family llada_family = {
    .name = "llada",
    .summary = "LLaDA",
    .hf = FAMILY_NAMES({"LLaDAModelLM"}),
    .tensors = {llada_tensors},
    .keys = {base_keys, llada_keys},
    .vocabs = {&plain_bpe_vocab},
    .keys_after_vocab = KEYS({".tokenizer.ggml.add_bos_token", GGUF_BOOL, ALWAYS, .value = 1}),
};

const struct family llada_moe_family = {
    .name = "llada-moe",
    .summary = "LLaDA MoE",
    .hf = FAMILY_NAMES({"LLaDAMoEModel"}, {"LLaDAMoEModelLM"}),
    .tensors = {qk_norm_tensors, expert_tensors, router_tensors, decoder_tensors},
    .keys = {base_keys, KEYS({"expert_feed_forward_length", GGUF_U32, IF_PRESENT, "expert_intermediate_size"},
                             {".tokenizer.ggml.mask_token_id", GGUF_U32, ALWAYS, .value = 156895}, DIFFUSION)},
    .vocabs = {&bpe_vocab},
};
