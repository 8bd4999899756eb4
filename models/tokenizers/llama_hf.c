/* "llama" from a tokenizer.json: BPE with byte fallback and a decoder in steps, for models without tokenizer.model. */

#include "models/tokenizers/hf_kind.h"

bool llama_hf_fits(const struct json *tokenizer)
{
    const struct json *model = json_get(tokenizer, "model");
    return json_string_is(json_get(model, "type"), "BPE") && json_bool(json_get(model, "byte_fallback"), false) &&
           json_string_is(json_get(json_get(tokenizer, "decoder"), "type"), "Sequence");
}

bool llama_hf_list(const struct vocab_input *input, const struct hf_vocabulary *vocabulary, struct token_list *ret_list,
                   struct error *error)
{
    /* control tokens are the special tokens with a name, whatever flags tokenizer.json has for others */
    struct text_index specials = {0};
    size_t length, number;
    if (!hf_count_fits(input, vocabulary, vocabulary->n_ids, error) ||
        !token_list_init(ret_list, vocabulary->n_ids, -1000.f, error))
        return false;
    hf_index_named_specials(vocabulary, &specials);
    for (struct json_member token = {0}; json_next_member(vocabulary->vocab, &token);) {
        uint64_t id = 0;
        const char *text = token.key;
        length = token.key_length;
        enum token_type type = text_index_find(&specials, text, length, &number) ? TOKEN_CONTROL : TOKEN_NORMAL;
        json_u64(token.value, &id);
        token_list_set(ret_list, id, text, length, -1000.f, hf_is_byte(text, length) ? TOKEN_BYTE : type);
    }
    for (size_t i = 0; i < vocabulary->n_added; i++) {
        const struct added_token *added = &vocabulary->added[i];
        bool is_special = text_index_find(&specials, added->text, added->length, &number);
        if (added->id >= vocabulary->n_model_tokens)
            token_list_set(ret_list, added->id, added->text, added->length, -1000.f,
                           is_special ? TOKEN_CONTROL : TOKEN_USER_DEFINED);
    }
    text_index_free(&specials);
    return true;
}

static bool is_exact(const struct vocab_input *input, const struct hf_vocabulary *vocabulary)
{
    return hf_is_too_new(vocabulary->files) || (input->references != NULL && input->references->exact_tokenizer);
}

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    struct token_list list;
    if (is_exact(input, vocabulary))
        return hf_spm_write(kvs, input, vocabulary, (struct hf_spm_form){0}, error);
    if (!llama_hf_list(input, vocabulary, &list, error))
        return false;
    checkpoint_note(
        input->checkpoint, SUBJECT_GGUF,
        "there is no tokenizer.model, so the converter gives all tokens one score, and llama.cpp splits words "
        "otherwise than transformers; -o tokenizer=exact writes the scores that the merges give back");
    token_list_write(&list, "llama", "default", true, kvs);
    struct special_vocab_options options = {.n_vocab = list.n_tokens};
    token_list_free(&list);
    return special_vocab_write(kvs, input, vocabulary->files, &options, error);
}

/* The converter denies Jamba the space before a text, whatever tokenizer.json says. */
static bool write_jamba(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                        struct error *error)
{
    if (!write_keys(kvs, input, vocabulary, error))
        return false;
    if (!is_exact(input, vocabulary))
        gguf_set_bool(kvs, "tokenizer.ggml.add_space_prefix", false);
    return true;
}

const struct vocab llama_hf_vocab = {
    .name = "BPE with byte fallback", .file = "tokenizer.json", .fits = llama_hf_fits, .write = write_keys};

const struct vocab jamba_hf_vocab = {
    .name = "BPE with byte fallback", .file = "tokenizer.json", .fits = llama_hf_fits, .write = write_jamba};
