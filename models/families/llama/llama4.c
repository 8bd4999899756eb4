/* Llama 4, MobileLLM-R1: the text model. conversion/llama.py, Llama4Model. */
#include "models/families/llama/llama.h"

static const struct relation_row tensors[] = {
    {"model.layers.{}.feed_forward.gate_proj", "blk.{}.ffn_gate", .parallel = "row"},
    {"model.layers.{}.feed_forward.up_proj", "blk.{}.ffn_up", .parallel = "row"},
    {"model.layers.{}.feed_forward.down_proj", "blk.{}.ffn_down", .parallel = "column"},
    {"model.layers.{}.feed_forward.router", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.feed_forward.experts.gate_up_proj", "blk.{}.ffn_gate_exps.weight, blk.{}.ffn_up_exps.weight",
     "expert c (gate + up) -> expert gate c, expert up c", "gate up"},
    {"model.layers.{}.feed_forward.experts.down_proj", "blk.{}.ffn_down_exps.weight", "expert f c -> expert c f", "f"},
    {"model.layers.{}.feed_forward.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp", .parallel = "row"},
    {"model.layers.{}.feed_forward.shared_expert.up_proj", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {"model.layers.{}.feed_forward.shared_expert.down_proj", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {0},
};

/* Reports whether all layers have full attention: by their types, or by transformers' default. */
static bool all_are_full(const struct hparams *hparams)
{
    const struct json *types = hparams_get(hparams, "layer_types"), *item;
    uint64_t interval;
    if (json_is(types, JSON_ARRAY)) {
        for (item = json_first(types); item != NULL; item = json_next(item))
            if (!json_string_is(item, "full_attention"))
                return false;
        return true;
    }
    const struct json *rope = hparams_get(hparams, "no_rope_layers");
    for (item = json_first(rope); item != NULL; item = json_next(item)) {
        uint64_t has_rope;
        if (!json_u64(item, &has_rope) || has_rope != 0)
            return false;
    }
    return json_count(rope) > 0 ||
           (json_u64(hparams_get(hparams, "no_rope_layer_interval"), &interval) && interval == 1);
}

static bool emit_sliding_window(struct model_builder *builder, struct error *error)
{
    if (all_are_full(builder->model->hparams))
        gguf_set_u32(&builder->model->kvs, builder_key(builder, "attention.sliding_window"), 0);
    return true;
}

/* config.json's intermediate_size is the experts' width. */
static const struct key_row keys[] = {
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size_mlp"},
    {"interleave_moe_layer_step", GGUF_U32, REQUIRED, "interleave_moe_layer_step"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {.emit = emit_sliding_window},
    {0},
};

/* Returns "false" for Maverick, whose queries have no norm; without a key for that, its 128 experts identify it. */
static const char *norms_queries(const struct config_material *material)
{
    enum { MAVERICK_EXPERTS = 128 };
    double n_experts;
    bool is_maverick = config_number_of_layer(material, "expert_count", 0, &n_experts) && n_experts == MAVERICK_EXPERTS;
    return is_maverick ? "false" : "true";
}

static const struct config_row common_rows[] = {
    {"use_qk_norm", .make = norms_queries},
    {0},
};

/* Without a window all layers have full attention and a rope. */
static const struct config_row config_full_rows[] = {
    {"layer_types", FROM_LAYERS, "attention.sliding_window", "null|'full_attention'"},
    {"no_rope_layers", FROM_LAYERS, "attention.sliding_window", "0|1"},
    {"attn_temperature_tuning", FROM_TEXT, .text = "false"},
    {0},
};

const struct family llama4_family = {
    .name = "llama4",
    .summary = "Llama 4 (language model)",
    .hf = FAMILY_NAMES({"Llama4ForCausalLM"}, {"Llama4ForConditionalGeneration"}),
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"Llama4ForCausalLM", "llama4_text", "key:attention.sliding_window=0",
         CONFIG_TABLES(silu_rows, attention_bias_rows, common_rows, config_full_rows)},
        {"Llama4ForCausalLM", "llama4_text", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, common_rows)}),
    .keys = {base_keys, llama_keys, keys},
    .vocabs = {&bpe_vocab},
    .add_extras = add_rope_freqs,
};
