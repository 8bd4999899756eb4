/* Hunyuan: byte-level BPE, from tokenizer.json or from the ranks of hy.tiktoken. The tokens that begin and end texts
 * and turns differ from config.json's. conversion/hunyuan.py; the tokenization_hy.py of these repositories. */
#include "models/tokenizers/hf_kind.h"
#include "models/tokenizers/ranked.h"

#include <string.h>

static void set_id(struct gguf_kvs *kvs, const char *key, const struct json *value)
{
    uint64_t id;
    if (json_u64(value, &id) && id <= UINT32_MAX)
        gguf_set_u32(kvs, key, (uint32_t)id);
}

/* Returns config.json's values for the tokenizer. */
static const struct hparams *told_by(const struct vocab_input *input)
{
    return follows(input->references, HUNYUAN_DRAFTS) ? input->owner : input->hparams;
}

static bool set_ends(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    struct document *generation;
    if (!document_open(input->checkpoint, "generation_config.json", &generation, error))
        return false;
    set_id(kvs, "tokenizer.ggml.eos_token_id", hparams_get(told_by(input), "eod_token_id"));
    const struct json *ends = json_get(document_root(generation), "eos_token_id");
    if (json_is(ends, JSON_ARRAY) && json_count(ends) >= 2)
        set_id(kvs, "tokenizer.ggml.eot_token_id", json_first(ends));
    document_close(generation);
    return true;
}

/* Writes the keys; a padding token below 0 means none. */
static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    int64_t padding = 0;
    json_i64(hparams_get(told_by(input), "pad_token_id"), &padding);
    if (!bpe_write(kvs, input, vocabulary, NULL, 0, error))
        return false;
    if (padding < 0)
        gguf_kvs_remove(kvs, "tokenizer.ggml.padding_token_id");
    return set_ends(kvs, input, error);
}

/* Special tokens, which are constants of the tokenizer's code; it has vocab_size tokens. */
static const char *const specials[] = {"<|endoftext|>", "<|startoftext|>", "<|bos|>", "<|eos|>", "<|pad|>", NULL};

static enum vocab_result add_ranks(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    static const struct ranked_kind kind = {"hy.tiktoken", TIKTOKEN_RANKS_COUNTED, "hunyuan", .specials = specials};
    return ranked_add(kvs, input, &kind, error);
}

/* Adds a dense model's vocabulary. The one dense model with such a file names the wrong BOS token in config.json. */
static enum vocab_result add_dense(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    enum { WIDTH_OF_7B = 4096, BEGIN_OF_7B = 127958 };
    uint64_t width = 0;
    enum vocab_result result = add_ranks(kvs, input, error);
    if (result != VOCAB_ADDED)
        return result;
    json_u64(hparams_get(input->hparams, "hidden_size"), &width);
    if (width == WIDTH_OF_7B)
        gguf_set_u32(kvs, "tokenizer.ggml.bos_token_id", BEGIN_OF_7B);
    return set_ends(kvs, input, error) ? VOCAB_ADDED : VOCAB_FAILED;
}

static enum vocab_result add_moe(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    enum { BEGIN = 127959 };
    enum vocab_result result = add_ranks(kvs, input, error);
    if (result == VOCAB_ADDED)
        gguf_set_u32(kvs, "tokenizer.ggml.bos_token_id", BEGIN);
    return result;
}

const struct vocab hunyuan_vocab = {.name = "byte-level BPE of Hunyuan", .file = "tokenizer.json", .write = write_keys};
const struct vocab hunyuan_ranks_vocab = {
    .name = "ranked tokens of Hunyuan, dense", .file = "hy.tiktoken", .add = add_dense};
const struct vocab hunyuan_moe_ranks_vocab = {
    .name = "ranked tokens of Hunyuan with experts", .file = "hy.tiktoken", .add = add_moe};
