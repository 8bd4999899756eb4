/* Pangu Embedded, of Huawei. conversion/pangu.py. */
#include "models/families/llama/llama.h"

/* Leaves out a tied head, stored or not. */
static const struct relation_row tensors[] = {{"lm_head.weight", NULL, .when = "tie_word_embeddings"}, {0}};

/* Sets the sizes of keys and values, which follow the other keys if head_dim is missing. */
static bool emit_head_lengths(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[] = {{"attention.key_length", GGUF_U32, .compute = compute_head_dim},
                                          {"attention.value_length", GGUF_U32, .compute = compute_head_dim},
                                          {0}};
    const struct json *given = hparams_get(builder->model->hparams, "head_dim");
    return (given != NULL && !json_is(given, JSON_NULL)) || builder_emit(builder, rows, error);
}

static const struct key_row keys[] = {
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_head_dim},
    {.emit = emit_head_lengths},
    {0},
};

const struct family pangu_embedded_family = {
    .name = "pangu-embedded",
    .summary = "Pangu Embedded",
    .hf = FAMILY_NAMES({"PanguEmbeddedForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&spm_vocab},
    .after_vocab = llama_before_vocab,
};
