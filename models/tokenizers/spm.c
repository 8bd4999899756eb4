/* "llama" from tokenizer.model: SentencePiece, with the tokens that the Hugging Face files add. Phi-3 adds them in a
 * way of its own. */
#include "models/tokenizers/sentencepiece.h"

#include <stdlib.h>

/* Phi-3: the added tokens of tokenizer.json besides. */
static void add_tokenizer_tokens(struct token_list *list, const struct json *tokenizer)
{
    const struct json *added = json_get(tokenizer, "added_tokens");
    for (const struct json *token = json_first(added); token != NULL; token = json_next(token)) {
        size_t length;
        uint64_t id;
        const char *text = json_string(json_get(token, "content"), &length);
        bool special = json_bool(json_get(token, "special"), false);
        if (text != NULL && json_u64(json_get(token, "id"), &id))
            token_list_set(list, id, text, length, -1000.f, special ? TOKEN_CONTROL : TOKEN_USER_DEFINED);
    }
}

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const sentencepiece_model *model,
                       bool phi3, struct error *error)
{
    struct tokenizer_files files;
    struct token_list list;
    if (!tokenizer_files_load(input->checkpoint, &files, error))
        return false;
    bool written = sentencepiece_list(input, model, sentencepiece_vocab_size(input, model), &list, error);
    if (written) {
        sentencepiece_add_file(&list, files.added_tokens);
        sentencepiece_add_decoder(&list, files.config, !phi3);
        if (phi3)
            add_tokenizer_tokens(&list, files.tokenizer);
        written = sentencepiece_write(kvs, input, "default", &list, &files, error);
    }
    tokenizer_files_free(&files);
    return written;
}

static enum vocab_result add_spm(struct gguf_kvs *kvs, const struct vocab_input *input, bool phi3, struct error *error)
{
    sentencepiece_model *model;
    enum vocab_result result = sentencepiece_load(input->checkpoint, "tokenizer.model", &model, error);
    if (result != VOCAB_ADDED)
        return result;
    if (!write_keys(kvs, input, model, phi3, error))
        result = VOCAB_FAILED;
    sentencepiece_free(model);
    return result;
}

static enum vocab_result add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    return add_spm(kvs, input, false, error);
}

static enum vocab_result add_phi3(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    return add_spm(kvs, input, true, error);
}

const struct vocab spm_vocab = {.name = "SentencePiece", .file = "tokenizer.model", .add = add};
const struct vocab phi3_vocab = {
    .name = "SentencePiece with Phi-3's added tokens", .file = "tokenizer.model", .add = add_phi3};
