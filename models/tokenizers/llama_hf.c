/* "llama" from a tokenizer.json: BPE with byte fallback and a decoder in steps, where there is no tokenizer.model. */
#include "models/tokenizers/hf_vocabulary.h"

#include <string.h>

static bool is_llama(const struct json *tokenizer)
{
    const struct json *model = json_get(tokenizer, "model");
    return json_string_is(json_get(model, "type"), "BPE") && json_bool(json_get(model, "byte_fallback"), false) &&
           json_string_is(json_get(json_get(tokenizer, "decoder"), "type"), "Sequence");
}

static bool is_byte(const char *text, size_t length)
{
    return length == 6 && memcmp(text, "<0x", 3) == 0 && strspn(text + 3, "0123456789abcdefABCDEF") >= 2 && text[5] == '>';
}

/* The tokens of the model, and after them the added ones that have ids of their own. */
static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    struct token_list list;
    if (!hf_count_fits(input, vocabulary, vocabulary->n_ids, error) || !token_list_init(&list, vocabulary->n_ids, -1000.f, error))
        return false;
    for (const struct json *token = json_first(vocabulary->vocab); token != NULL; token = json_next(token)) {
        size_t length;
        uint64_t id = 0;
        const char *text = json_key(token, &length);
        const struct added_token *added = hf_added_token(vocabulary, text, length);
        enum token_type type = is_byte(text, length)             ? TOKEN_BYTE
                               : added != NULL && added->special ? TOKEN_CONTROL
                                                                 : TOKEN_NORMAL;
        json_u64(token, &id);
        token_list_set(&list, id, text, length, -1000.f, type);
    }
    for (size_t i = 0; i < vocabulary->n_added; i++) {
        const struct added_token *added = &vocabulary->added[i];
        if (added->id >= vocabulary->n_model_tokens)
            token_list_set(&list, added->id, added->text, added->length, -1000.f,
                           added->special ? TOKEN_CONTROL : TOKEN_USER_DEFINED);
    }
    gguf_set_text(kvs, "tokenizer.ggml.model", "llama");
    gguf_set_text(kvs, "tokenizer.ggml.pre", "default");
    token_list_write(&list, true, kvs);
    struct special_vocab_options options = {.n_vocab = list.n_tokens};
    token_list_free(&list);
    return special_vocab_write(kvs, input, vocabulary->files, &options, error);
}

static enum vocab_result add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    return hf_vocabulary_add(kvs, input, is_llama, write_keys, error);
}

const struct vocab llama_hf_vocab = {.name = "BPE with byte fallback", .file = "tokenizer.json", .add = add};
