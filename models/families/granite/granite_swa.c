/* Granite with a sliding window in most layers, dense and with experts. conversion/granite.py. */
#include "models/families/granite/granite.h"
#include "models/families/layers.h"
#include "models/families/llama/llama.h"

#define EXPERTS "model.layers.{}.block_sparse_moe."
#define SHARED  "model.layers.{}.shared_mlp."

/* The gates of experts stay beside what they gate. */
static const struct relation_row tensors[] = {
    {"model.layers.{}.self_attn.sinks", "blk.{}.attn_sinks.weight", .parallel = "row"},
    {EXPERTS "experts.gate_up_proj", "blk.{}.ffn_gate_up_exps.weight", "... (gate + up) c", "gate up"},
    {EXPERTS "experts.down_proj", "blk.{}.ffn_down_exps.weight", .parallel = "column"},
    {EXPERTS "router", "blk.{}.ffn_gate_inp"},
    {EXPERTS "input_linear", "blk.{}.ffn_gate_up_exps", "... (gate + up) c", "gate up", .forward_only = true},
    {EXPERTS "output_linear", "blk.{}.ffn_down_exps", .parallel = "column", .forward_only = true},
    {EXPERTS "router.layer", "blk.{}.ffn_gate_inp", .forward_only = true},
    {SHARED "input_linear", "blk.{}.ffn_up_shexp", "(gate + up) c", "gate up"},
    {SHARED "output_linear", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {0},
};

/* Without a list, every fourth layer has full attention. */
static bool emit_windows(struct model_builder *builder, struct error *error)
{
    struct layers layers;
    const struct json *types = hparams_get(builder->model->hparams, "layer_types");
    if (json_count(types) > 0)
        return emit_listed_windows(builder, error);
    if (!layers_new(builder, &layers, error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = i % 4 != 0;
    layers_set(builder, "attention.sliding_window_pattern", GGUF_BOOL, &layers);
    return true;
}

static bool emit_ropes(struct model_builder *builder, struct error *error)
{
    struct layers layers;
    const struct json *list = hparams_get(builder->model->hparams, "no_rope_layers");
    if (json_count(list) == 0)
        return true;
    if (!layers_of_list(builder, list, &layers, error))
        return false;
    layers_fill(&layers, list);
    layers_set(builder, "attention.rope_pattern", GGUF_BOOL, &layers);
    return true;
}

static const struct key_row keys[] = {
    {"attention.sliding_window", GGUF_U32, OR_DEFAULT, "sliding_window", 128},
    {.emit = emit_windows},
    {.emit = emit_ropes},
    {0},
};

static const struct config_row config_rows[] = {
    {"logits_scaling", FROM_KEY, "logit_scale", .text = "1.0"},
    {"layer_types", FROM_LAYERS, "attention.sliding_window_pattern", "'sliding_attention'|'full_attention'"},
    {"no_rope_layers", FROM_LAYERS, "attention.rope_pattern", "1|0"},
    {0},
};

const struct family granite_swa_family = {
    .name = "granite_swa",
    .summary = "Granite with sliding windows",
    .since = 10531,
    .hf = FAMILY_NAMES({"GraniteSWAForCausalLM"}),
    .tensors = {tensors, llama_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"GraniteSWAForCausalLM", "granite_swa", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, mlp_bias_rows, config_rows)}),
    .keys = {base_keys, granite_keys, keys},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
    .rename = granite_without_towers,
};

const struct family granite_moe_swa_family = {
    .name = "granite_moe_swa",
    .architecture = "granite_swa",
    .summary = "Granite with sliding windows, MoE",
    .since = 10531,
    .hf = FAMILY_NAMES({"GraniteMoeSWAForCausalLM"}),
    .told_by = "key:expert_count",
    .tensors = {tensors, llama_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"GraniteMoeSWAForCausalLM", "granitemoe_swa", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, config_rows)}),
    .keys = {base_keys, granite_keys, keys, granite_moe_keys},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
    .rename = granite_without_towers,
};
