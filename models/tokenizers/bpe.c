/* "gpt2": byte-level byte pair encoding, from tokenizer.json, or from vocab.json and merges.txt. */
#include "models/tokenizers/bpe.h"
#include "models/tokenizers/pre.h"

bool bpe_write(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
               const struct special_id *ids, size_t n_ids, struct error *error)
{
    struct token_list list;
    uint64_t n_tokens = vocabulary->n_ids;
    json_u64(hparams_get(input->hparams, "vocab_size"), &n_tokens);
    if (!hf_count_fits(input, vocabulary, n_tokens, error) || !hf_token_list(vocabulary, n_tokens, &list, error))
        return false;
    gguf_set_text(kvs, "tokenizer.ggml.model", "gpt2");
    bool named = pre_write(kvs, input, vocabulary, error);
    token_list_write(&list, NULL, NULL, false, kvs);
    token_list_free(&list);
    if (!named)
        return false;
    const struct special_vocab_options options = {.load_merges = true, .ids = ids, .n_ids = n_ids};
    return special_vocab_write(kvs, input, vocabulary->files, &options, error);
}

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    return bpe_write(kvs, input, vocabulary, NULL, 0, error);
}

const struct vocab bpe_vocab = {.name = "byte-level BPE", .file = "tokenizer.json", .write = write_keys};
