/* "gpt2": byte-level byte pair encoding, from tokenizer.json, or from vocab.json and merges.txt. */
#include "models/tokenizers/hf_vocabulary.h"
#include "models/tokenizers/pre.h"

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    struct token_list list;
    uint64_t n_tokens = vocabulary->n_ids;
    json_u64(hparams_get(input->hparams, "vocab_size"), &n_tokens);
    if (!hf_count_fits(input, vocabulary, n_tokens, error) || !hf_token_list(vocabulary, n_tokens, &list, error))
        return false;
    gguf_set_text(kvs, "tokenizer.ggml.model", "gpt2");
    gguf_set_text(kvs, "tokenizer.ggml.pre", pre_name(input, vocabulary));
    token_list_write(&list, false, kvs);
    token_list_free(&list);
    return special_vocab_write(kvs, input, vocabulary->files, &(struct special_vocab_options){.load_merges = true}, error);
}

static enum vocab_result add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    return hf_vocabulary_add(kvs, input, NULL, write_keys, error);
}

const struct vocab bpe_vocab = {.name = "byte-level BPE", .file = "tokenizer.json", .add = add};
