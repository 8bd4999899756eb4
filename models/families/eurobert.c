/* EuroBERT, Jina v5. conversion/bert.py. */
#include "models/families/family.h"

static const struct family_name names[] = {{"EuroBertModel", "model."}, {"JinaEmbeddingsV5Model", "model."}, {0}};

static const struct key_row keys[] = {
    {"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"},
    {.emit = emit_pooling_type},
    {0},
};

static const char *const prefixes[] = {"model.", NULL};

static bool begin_no_texts(struct draft *draft, const struct vocab_input *input, struct error *error)
{
    (void)input, (void)error;
    gguf_set_bool(&draft->model->kvs, "tokenizer.ggml.add_bos_token", false);
    return true;
}

const struct family eurobert_family = {
    .name = "eurobert",
    .summary = "EuroBERT, Jina v5",
    .hf = names,
    .tensors = {decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
    .dropped_prefixes = prefixes,
    .before_vocab = begin_no_texts,
};
