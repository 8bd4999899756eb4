/* "llama" from tokenizer.model, where tokens of tokenizer_config.json take the place of pieces. conversion/arctic.py.
 */
#include "models/tokenizers/sentencepiece.h"

#include <stdlib.h>
#include <string.h>

static void add_decoder(struct token_list *list, const struct json *config)
{
    size_t unknown_length, length;
    const char *unknown = token_content(json_get(config, "unk_token"), &unknown_length);
    const struct json *decoder = json_get(config, "added_tokens_decoder");
    for (const struct json *token = json_first(decoder); token != NULL; token = json_next(token)) {
        const char *text = json_string(json_get(token, "content"), &length);
        uint64_t id = strtoull(json_key(token, NULL), NULL, 10);
        if (text == NULL)
            continue;
        bool is_special = json_bool(json_get(token, "special"), false);
        bool is_unknown = unknown != NULL && length == unknown_length && memcmp(text, unknown, length) == 0;
        if (is_special)
            token_list_set(list, id, text, length, 0, is_unknown ? TOKEN_UNKNOWN : TOKEN_CONTROL);
        else
            token_list_set(list, id, text, length, -10000.f, TOKEN_USER_DEFINED);
    }
}

static enum vocab_result add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    sentencepiece_model *model;
    struct tokenizer_files files;
    struct token_list list;
    enum vocab_result result = sentencepiece_load(input->checkpoint, "tokenizer.model", &model, error);
    if (result != VOCAB_ADDED)
        return result;
    result = VOCAB_FAILED;
    if (tokenizer_files_load(input->checkpoint, &files, error)) {
        if (sentencepiece_list(input, model, sentencepiece_vocab_size(input, model), &list, error)) {
            add_decoder(&list, files.config);
            if (sentencepiece_write(kvs, input, "default", &list, &files, error))
                result = VOCAB_ADDED;
        }
        tokenizer_files_free(&files);
    }
    sentencepiece_free(model);
    return result;
}

const struct vocab arctic_vocab = {.name = "SentencePiece of Arctic", .file = "tokenizer.model", .add = add};
