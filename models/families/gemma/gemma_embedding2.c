/* EmbeddingGemma 2: Gemma 4 as an encoder. conversion/gemma.py, EmbeddingGemma2Model. */
#include "models/families/gemma/gemma.h"

#define BLOCK "model.layers.{}.ple_block."

static const struct relation_row tensors[] = {
    {"ple.per_layer_model_projection", "per_layer_model_proj", .parallel = "row"},
    {"ple.per_layer_projection_norm", "per_layer_proj_norm"},
    {BLOCK "per_layer_input_gate", "blk.{}.inp_gate"},
    {BLOCK "per_layer_projection", "blk.{}.proj"},
    {BLOCK "post_per_layer_input_norm", "blk.{}.post_norm"},
    {"embedding_projection", "output", .parallel = "row"},
    {0},
};

/* No layer takes the keys of another one, whatever config.json says. */
static bool adjust(struct model_builder *builder, struct error *error)
{
    return hparams_override(builder->model->hparams, "num_kv_shared_layers", 0, error) &&
           gemma3_count_tokens(builder, error);
}

static const struct key_row keys[] = {
    {"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window", .times = 2}, /* of both sides of a token */
    {"embedding_length_out", GGUF_U32, REQUIRED, "embedding_dim"},
    {"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
    {.emit = emit_pooling_type},
    {0},
};

const struct family gemma_embedding2_family = {
    .name = "gemma-embedding2",
    .summary = "EmbeddingGemma 2",
    .since = 11549,
    .hf = FAMILY_NAMES({"EmbeddingGemma2Model"}),
    .tensors = {tensors, gemma4_tensors, qk_norm_tensors, decoder_tensors},
    .keys = {base_keys, gemma3_keys, gemma4_keys, keys},
    .vocabs = {&gemma4_vocab},
    .adjust = adjust,
};
