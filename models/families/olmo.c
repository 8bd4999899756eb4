/* OLMo 1 to 3, and OLMoE. conversion/olmo.py. */
#include "models/families/layers.h"

const struct family olmo_family = {
    .name = "olmo",
    .summary = "OLMo 1",
    .hf = FAMILY_NAMES({"OlmoForCausalLM"}, {"OLMoForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight", QUERY_ROTARY, "head"},
                        {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight", KEY_ROTARY, "kv_head"}),
                decoder_tensors},
    .forms = CONFIG_FORMS({"OlmoForCausalLM", "olmo", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows,
                                         CONFIG_ROWS({"clip_qkv", FROM_KEY, "attention.clamp_kqv", .text = "null"}))}),
    .keys = {base_keys, KEYS({"attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-5},
                             {"attention.clamp_kqv", GGUF_F32, IF_PRESENT, "clip_qkv"})},
    .vocabs = {&bpe_vocab},
};

/* Sets the layers with a window: config.json's, else all but every fourth. */
static bool emit_window_pattern(struct model_builder *builder, struct error *error)
{
    enum { FULL_EVERY = 4 };
    const struct hparams *hparams = builder->model->hparams;
    struct buffer pattern = {0};
    uint64_t n_layers = 0;
    if (hparams_get(hparams, "sliding_window") == NULL)
        return true;
    if (json_is(hparams_get(hparams, "layer_types"), JSON_ARRAY))
        return emit_listed_windows(builder, error);
    for (; n_layers < builder->dimensions.n_layers; n_layers++)
        buffer_append_le(&pattern, (n_layers + 1) % FULL_EVERY != 0, 1);
    gguf_set_array(&builder->model->kvs, builder_key(builder, "attention.sliding_window_pattern"), GGUF_BOOL, n_layers,
                   &pattern);
    return true;
}

const struct family olmo2_family = {
    .name = "olmo2",
    .summary = "OLMo 2 and 3",
    .hf = FAMILY_NAMES({"Olmo2ForCausalLM"}, {"Olmo3ForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
                        {"model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"}),
                qk_norm_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"Olmo3ForCausalLM", "olmo3", "key:attention.sliding_window", CONFIG_TABLES(silu_rows, attention_bias_rows)},
        {"Olmo2ForCausalLM", "olmo2", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows)}),
    .keys = {base_keys,
             KEYS({"attention.sliding_window", GGUF_U32, IF_PRESENT, "sliding_window"}, {.emit = emit_window_pattern})},
    .vocabs = {&bpe_vocab},
};

static const struct config_row olmoe_config_rows[] = {
    {"norm_topk_prob", FROM_TEXT, .text = "false"},
    {"clip_qkv", FROM_TEXT, .text = "null"},
    {0},
};

const struct family olmoe_family = {
    .name = "olmoe",
    .summary = "OLMoE",
    .hf = FAMILY_NAMES({"OlmoeForCausalLM"}),
    .tensors = {qk_norm_tensors, expert_tensors, router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"OlmoeForCausalLM", "olmoe", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, olmoe_config_rows)}),
    .keys = {base_keys, KEYS({"attention.layer_norm_rms_epsilon", GGUF_F32, ALWAYS, .value = 1e-5})},
    .vocabs = {&bpe_vocab},
};
