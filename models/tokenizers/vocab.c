#include "models/tokenizers/vocab.h"

#include "models/tokenizers/hf_vocabulary.h"
#include "models/tokenizers/ranked.h"
#include "models/tokenizers/sentencepiece.h"

enum vocab_result vocab_add(const struct vocab *vocab, struct gguf_kvs *kvs, const struct vocab_input *input,
                            struct error *error)
{
    if (vocab->applies != NULL && !vocab->applies(input->hparams))
        return VOCAB_ABSENT;
    if (vocab->write != NULL)
        return hf_vocabulary_add(kvs, input, vocab->fits, vocab->write, error);
    if (vocab->write_pieces != NULL)
        return sentencepiece_add(kvs, input, vocab, error);
    if (vocab->ranked != NULL)
        return ranked_add(kvs, input, vocab->ranked, error);
    return vocab->add(kvs, input, error);
}

enum vocab_result vocab_add_saved(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    enum vocab_result result = vocab_add(&hf_spm_vocab, kvs, input, error);
    return result == VOCAB_ABSENT ? vocab_add(&hf_unigram_vocab, kvs, input, error) : result;
}

/* "none", for models whose tokens are not text. conversion/base.py (_set_vocab_none). */

static enum vocab_result add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    gguf_set_text(kvs, "tokenizer.ggml.model", "none");
    return VOCAB_ADDED;
}

const struct vocab no_vocab = {.name = "no tokenizer", .file = "config.json", .add = add};
