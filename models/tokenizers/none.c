/* "none", for models whose tokens are not text. conversion/base.py (_set_vocab_none). */
#include "models/tokenizers/vocab.h"

static enum vocab_result add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    gguf_set_text(kvs, "tokenizer.ggml.model", "none");
    return VOCAB_ADDED;
}

const struct vocab no_vocab = {.name = "no tokenizer", .file = "config.json", .add = add};
