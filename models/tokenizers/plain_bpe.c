/* Byte-level BPE with the files' flags for added tokens: special or not, whatever their texts look like.
 * conversion/llada.py, dream.py. */
#include "models/tokenizers/hf_kind.h"

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    struct hf_vocabulary plain = *vocabulary;
    plain.keeps_added = true;
    return bpe_write(kvs, input, &plain, NULL, 0, error);
}

const struct vocab plain_bpe_vocab = {
    .name = "plain byte-level BPE", .file = "tokenizer.json", .fits = bpe_fits, .write = write_keys};
