/* Families that differ from Llama in a few tensors and keys. */
#include "models/families/llama/llama.h"

/* Arcee AFM. conversion/llama.py. */

static const struct config_row arcee_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'relu2'"},
    {"head_dim", FROM_KEY, "rope.dimension_count"},
    {0},
};

const struct family arcee_family = {
    .name = "arcee",
    .summary = "Arcee AFM",
    .hf = FAMILY_NAMES({"ArceeForCausalLM"}),
    .tensors = {llama_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"ArceeForCausalLM", "arcee", NULL, CONFIG_TABLES(attention_bias_rows, mlp_bias_rows, arcee_rows)}),
    .dimensions = {llama_dimensions},
    .keys = {base_keys, llama_keys, KEYS({.emit = emit_pooling_type})},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
};

/* Arctic, of Snowflake: a dense MLP in parallel with experts. conversion/arctic.py. */

static const struct relation_row arctic_tensors[] = {
    {"model.layers.{}.residual_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm_exps"},
    {"model.layers.{}.residual_mlp.w1", "blk.{}.ffn_gate", .parallel = "row"},
    {"model.layers.{}.residual_mlp.w2", "blk.{}.ffn_down", .parallel = "column"},
    {"model.layers.{}.residual_mlp.w3", "blk.{}.ffn_up", .parallel = "row"},
    {0},
};

const struct family arctic_family = {
    .name = "arctic",
    .summary = "Arctic",
    .hf = FAMILY_NAMES({"ArcticForCausalLM"}),
    .tensors = {arctic_tensors, llama_tensors, sparse_moe_tensors, decoder_tensors},
    .keys = {base_keys, KEYS({"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
                             {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_hidden})},
    .vocabs = {&arctic_vocab},
};

/* Nanbeige 4.2: Llama that runs its layers several times. conversion/nanbeige.py. */

/* Computes the number of loops; 0 and null mean 1. */
static bool compute_loops(const struct model_builder *builder, double *ret_value, struct error *error)
{
    if (!builder_number(builder, "num_loops", 1, ret_value, error))
        return false;
    if (*ret_value < 1)
        *ret_value = 1;
    return true;
}

const struct family nanbeige_family = {
    .name = "nanbeige",
    .summary = "Nanbeige 4.2",
    .hf = FAMILY_NAMES({"NanbeigeForCausalLM"}),
    .tensors = {llama_tensors, sparse_moe_tensors, decoder_tensors},
    .dimensions = {llama_dimensions},
    .keys = {base_keys, llama_keys,
             KEYS({"num_loops", GGUF_U32, .compute = compute_loops},
                  {"skip_loop_final_norm", GGUF_BOOL, OR_DEFAULT, "skip_loop_final_norm", 0})},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
};

/* SmolLM 3: conversion/llama.py's tensors and keys under another architecture. */

const struct family smollm3_family = {
    .name = "smollm3",
    .summary = "SmolLM 3",
    .hf = FAMILY_NAMES({"SmolLM3ForCausalLM"}),
    .tensors = {llama_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"SmolLM3ForCausalLM", "smollm3", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, mlp_bias_rows)}),
    .dimensions = {llama_dimensions},
    .keys = {base_keys, llama_keys},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
};

/* XVERSE, whose layers are Llama's. conversion/xverse.py, except keys that several heads share: the converter
 * regroups their rows by a wrong number of heads. */

static const struct key_row xverse_keys[] = {
    {"tensor_data_layout", GGUF_STRING, ALWAYS, .text = "Meta AI original pth"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_hidden_per_head},
    {0},
};

static bool note_shared_keys(struct model_builder *builder, struct error *error)
{
    if (dimensions_get(&builder->dimensions, "kv_head") != dimensions_get(&builder->dimensions, "head"))
        checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                        "the converter puts rows of keys that several heads share "
                        "into an order that is wrong; here it is right");
    return true;
}

const struct family xverse_family = {
    .name = "xverse",
    .summary = "XVERSE",
    .hf = FAMILY_NAMES({"XverseForCausalLM"}),
    .tensors = {llama_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"LlamaForCausalLM", "llama", NULL, CONFIG_TABLES(silu_rows)}),
    .keys = {base_keys, xverse_keys},
    .vocabs = {&xverse_vocab},
    .adjust = note_shared_keys,
};
