/* "llama" without scores, from XVERSE's tokenizer.json. conversion/xverse.py. */
#include "models/tokenizers/hf_kind.h"

/* The text for a token of one NUL byte, as Python shows that byte. */
static const char nul_text[] = "<b'\\x00'>";

static bool make_list(const struct vocab_input *input, const struct hf_vocabulary *vocabulary, struct token_list *list,
                      struct error *error)
{
    uint64_t n_tokens = vocabulary->n_ids;
    json_u64(hparams_get(input->hparams, "vocab_size"), &n_tokens);
    if (vocabulary->n_ids > n_tokens)
        return error_set(error, "config.json: vocab_size is %llu, and the tokenizer has %llu tokens",
                         (unsigned long long)n_tokens, (unsigned long long)vocabulary->n_ids);
    if (!hf_count_fits(input, vocabulary, n_tokens, error) || !token_list_init(list, n_tokens, 0, error))
        return false;
    for (struct json_member token = {0}; json_next_member(vocabulary->vocab, &token);) {
        const char *text = token.key;
        size_t length = token.key_length;
        uint64_t id = 0;
        json_u64(token.value, &id);
        if (length == 1 && *text == '\0')
            token_list_set(list, id, nul_text, sizeof nul_text - 1, 0, TOKEN_BYTE);
        else
            token_list_set(list, id, text, length, 0, hf_is_byte(text, length) ? TOKEN_BYTE : TOKEN_NORMAL);
    }
    for (size_t i = 0; i < vocabulary->n_added; i++) {
        const struct added_token *added = &vocabulary->added[i];
        if (!hf_is_byte(added->text, added->length))
            token_list_set(list, added->id, added->text, added->length, 0,
                           added->special ? TOKEN_CONTROL : TOKEN_USER_DEFINED);
    }
    return true;
}

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    struct token_list list;
    if (!make_list(input, vocabulary, &list, error))
        return false;
    token_list_write(&list, "llama", "default", false, kvs);
    struct special_vocab_options options = {.n_vocab = list.n_tokens};
    token_list_free(&list);
    return special_vocab_write(kvs, input, vocabulary->files, &options, error);
}

const struct vocab xverse_vocab = {
    .name = "BPE of XVERSE", .file = "tokenizer.json", .fits = llama_hf_fits, .write = write_keys};
