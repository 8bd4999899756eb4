/* GPT-NeoX, Pythia. conversion/gptneox.py. */
#include "models/families/shared.h"

#include <math.h>

static const struct relation_row tensors[] = {
    {"gpt_neox.embed_in", "token_embd", .parallel = "row"},
    {"gpt_neox.final_layer_norm", "output_norm"},
    {"embed_out", "output", .parallel = "row"},
    {"lm_head", "output", .parallel = "row", .forward_only = true}, /* a live model of transformers 5 */
    {"gpt_neox.layers.{}.input_layernorm", "blk.{}.attn_norm"},
    {"gpt_neox.layers.{}.attention.query_key_value", "blk.{}.attn_qkv", "(head part d) ... -> (part head d) ...",
     "head"},
    {"gpt_neox.layers.{}.attention.dense", "blk.{}.attn_output", .parallel = "column"},
    {"gpt_neox.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {"gpt_neox.layers.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up", .parallel = "row"},
    {"gpt_neox.layers.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down", .parallel = "column"},
    {0},
};

/* The converter takes the class's rotary_pct if config.json has none, as transformers 5 saves it. */
static bool compute_rotary(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    double converters, share;
    if (!compute_rotary_of_head(builder, ret_value, error))
        return false;
    if (json_get(hparams_raw(hparams), "rotary_pct") != NULL ||
        !json_double(hparams_rope(hparams, "partial_rotary_factor"), &share))
        return true;
    converters = *ret_value;
    *ret_value = trunc(share * (double)(dimensions_get(&builder->dimensions, "hidden") /
                                        dimensions_get(&builder->dimensions, "head")));
    if (*ret_value != converters)
        checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                        "config.json has partial_rotary_factor %g in rope_parameters instead of rotary_pct; the "
                        "converter overlooks it and writes rope.dimension_count %g, wfs writes %g",
                        share, converters, *ret_value);
    return true;
}

/* Without general.file_type. */
static const struct key_row keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "max_position_embeddings"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads"},
    {"use_parallel_residual", GGUF_BOOL, OR_DEFAULT, "use_parallel_residual", 1},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_eps"},
    {.emit = note_lost_rope},
    {0},
};

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'gelu'"},
    {"rotary_pct", FROM_HEAD_SHARE, "rope.dimension_count"},
    {"rotary_emb_base", FROM_TEXT, .text = "10000"},
    {"attention_bias", FROM_TENSOR, "blk.0.attn_qkv.bias"},
    {0},
};

const struct family gptneox_family = {
    .name = "gptneox",
    .summary = "GPT-NeoX, Pythia",
    .hf = FAMILY_NAMES({"GPTNeoXForCausalLM"}),
    .tensors = {tensors},
    .forms = CONFIG_FORMS({"GPTNeoXForCausalLM", "gpt_neox", NULL, CONFIG_TABLES(config_rows)}),
    .keys = {keys},
    .vocabs = {&bpe_vocab},
};
