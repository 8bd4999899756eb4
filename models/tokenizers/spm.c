/* "llama" from tokenizer.model: SentencePiece and the tokens that the Hugging Face files add, which Phi-3 adds in its
 * own way. */
#include "models/tokenizers/sentencepiece.h"

/* Phi-3: adds tokenizer.json's added tokens too. */
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

static bool write_list(struct gguf_kvs *kvs, const struct vocab_input *input, const struct sentencepiece *given,
                       bool phi3, struct error *error)
{
    struct token_list list;
    uint64_t n_tokens = sentencepiece_vocab_size(input, given->model);
    if (!sentencepiece_list(input, given->model, n_tokens, &list, error))
        return false;
    sentencepiece_add_file(&list, given->files->added_tokens);
    sentencepiece_add_decoder(&list, given->files->config, !phi3);
    if (phi3)
        add_tokenizer_tokens(&list, given->files->tokenizer);
    return sentencepiece_write(kvs, input, "default", &list, given->files, error);
}

static bool write_pieces(struct gguf_kvs *kvs, const struct vocab_input *input, const struct sentencepiece *given,
                         struct error *error)
{
    return write_list(kvs, input, given, false, error);
}

static bool write_phi3(struct gguf_kvs *kvs, const struct vocab_input *input, const struct sentencepiece *given,
                       struct error *error)
{
    return write_list(kvs, input, given, true, error);
}

const struct vocab spm_vocab = {.name = "SentencePiece", .file = "tokenizer.model", .write_pieces = write_pieces};
const struct vocab phi3_vocab = {
    .name = "SentencePiece with Phi-3's added tokens", .file = "tokenizer.model", .write_pieces = write_phi3};
