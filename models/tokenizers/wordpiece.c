/* "bert": WordPiece, from tokenizer.json or vocab.txt. Writes tokens as llama.cpp expects: U+2581 marks the start of a
 * word, instead of "##" before the rest of a word. */
#include "models/tokenizers/hf_kind.h"

#include <string.h>

/* Marks the tokens. Not marked are control tokens, and added ones from `first_whole` on: the converter marks these,
 * too, and llama.cpp then does not find them in a text. */
static void mark_word_starts(struct token_list *list, uint64_t first_whole)
{
    for (uint64_t i = 0; i < list->n_tokens; i++) {
        struct token *token = &list->tokens[i];
        if (token->type == TOKEN_CONTROL || (token->type == TOKEN_USER_DEFINED && i >= first_whole))
            continue;
        if (token->text == NULL) {
            token->text = arena_printf(list->arena, "[PAD%llu]", (unsigned long long)i);
            token->length = strlen(token->text);
        }
        if (token->length >= 2 && memcmp(token->text, "##", 2) == 0) {
            token->text += 2;
            token->length -= 2;
            continue;
        }
        char *marked = arena_alloc(list->arena, token->length + 4);
        memcpy(marked, "\xe2\x96\x81", 3);
        memcpy(marked + 3, token->text, token->length);
        token->text = marked;
        token->length += 3;
    }
}

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    struct token_list list;
    uint64_t n_tokens = vocabulary->n_ids, n_types = 1;
    json_u64(hparams_get(input->hparams, "vocab_size"), &n_tokens);
    json_u64(hparams_get(input->hparams, "type_vocab_size"), &n_types);
    if (hf_is_too_new(vocabulary->files) && hf_kind_of(vocabulary->files->tokenizer) != HF_WORDPIECE)
        return error_set(error, "tokenizer.json: not a WordPiece vocabulary, as llama.cpp takes for this model");
    if (!hf_count_fits(input, vocabulary, n_tokens, error) || !hf_token_list(vocabulary, n_tokens, &list, error))
        return false;
    mark_word_starts(&list, hf_is_too_new(vocabulary->files) ? vocabulary->n_model_tokens : UINT64_MAX);
    gguf_set_u32(kvs, "tokenizer.ggml.token_type_count", (uint32_t)n_types);
    gguf_set_text(kvs, "tokenizer.ggml.model", "bert");
    bool named = pre_write(kvs, input, vocabulary, error);
    token_list_write(&list, NULL, NULL, false, kvs);
    token_list_free(&list);
    if (!named)
        return false;
    return special_vocab_write(kvs, input, vocabulary->files, &(struct special_vocab_options){.n_vocab = n_tokens},
                               error);
}

static bool fits(const struct json *tokenizer)
{
    enum hf_kind kind = hf_kind_of(tokenizer);
    return kind != HF_BYTE_FALLBACK && kind != HF_UNIGRAM;
}

const struct vocab wordpiece_vocab = {.name = "WordPiece", .file = "tokenizer.json", .fits = fits, .write = write_keys};
