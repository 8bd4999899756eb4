/* "llama" from tokenizer.model, with tokens of tokenizer_config.json in place of pieces. conversion/arctic.py. */
#include "models/tokenizers/sentencepiece.h"

#include <stdlib.h>
#include <string.h>

static void add_decoder(struct token_list *list, const struct json *config)
{
    size_t unknown_length, length;
    const char *unknown = token_content(json_get(config, "unk_token"), &unknown_length);
    const struct json *decoder = json_get(config, "added_tokens_decoder");
    for (struct json_member token = {0}; json_next_member(decoder, &token);) {
        const char *text = json_string(json_get(token.value, "content"), &length);
        uint64_t id = strtoull(token.key, NULL, 10);
        if (text == NULL)
            continue;
        bool is_special = json_bool(json_get(token.value, "special"), false);
        bool is_unknown = unknown != NULL && length == unknown_length && memcmp(text, unknown, length) == 0;
        if (is_special)
            token_list_set(list, id, text, length, 0, is_unknown ? TOKEN_UNKNOWN : TOKEN_CONTROL);
        else
            token_list_set(list, id, text, length, -10000.f, TOKEN_USER_DEFINED);
    }
}

static bool write_pieces(struct gguf_kvs *kvs, const struct vocab_input *input, const struct sentencepiece *given,
                         struct error *error)
{
    struct token_list list;
    uint64_t n_tokens = sentencepiece_vocab_size(input, given->model);
    if (!sentencepiece_list(input, given->model, n_tokens, &list, error))
        return false;
    add_decoder(&list, given->files->config);
    return sentencepiece_write(kvs, input, "default", &list, given->files, error);
}

const struct vocab arctic_vocab = {
    .name = "SentencePiece of Arctic", .file = "tokenizer.model", .write_pieces = write_pieces};
