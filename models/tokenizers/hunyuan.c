/* Hunyuan: byte-level BPE; a padding token below 0 stands for none, and what ends texts and turns is said elsewhere.
 * conversion/hunyuan.py. */
#include "models/tokenizers/bpe.h"

static void set_id(struct gguf_kvs *kvs, const char *key, const struct json *value)
{
    uint64_t id;
    if (json_u64(value, &id) && id <= UINT32_MAX)
        gguf_set_u32(kvs, key, (uint32_t)id);
}

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    int64_t padding = 0;
    struct document *generation;
    json_i64(hparams_get(input->hparams, "pad_token_id"), &padding);
    if (!bpe_write(kvs, input, vocabulary, NULL, 0, error) ||
        !document_open(input->checkpoint, "generation_config.json", &generation, error))
        return false;
    if (padding < 0)
        gguf_kvs_remove(kvs, "tokenizer.ggml.padding_token_id");
    set_id(kvs, "tokenizer.ggml.eos_token_id", hparams_get(input->hparams, "eod_token_id"));
    const struct json *ends = json_get(document_root(generation), "eos_token_id");
    if (json_is(ends, JSON_ARRAY) && json_count(ends) >= 2)
        set_id(kvs, "tokenizer.ggml.eot_token_id", json_first(ends));
    document_close(generation);
    return true;
}

static enum vocab_result add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    return hf_vocabulary_add(kvs, input, NULL, write_keys, error);
}

const struct vocab hunyuan_vocab = {.name = "byte-level BPE of Hunyuan", .file = "tokenizer.json", .add = add};
