/* "llama" from InternLM's SentencePiece models, where the end of a turn also ends a text. conversion/internlm.py. */
#include "models/tokenizers/hf_kind.h"
#include "models/tokenizers/sentencepiece.h"

#include <stdlib.h>
#include <string.h>

static const char turn_end[] = "<|im_end|>";

/* Sets the id of the token that ends a turn, if `text` is its text. */
static void see(const char *text, size_t length, uint64_t id, uint64_t *turn_end_id)
{
    if (length == sizeof turn_end - 1 && memcmp(text, turn_end, length) == 0)
        *turn_end_id = id;
}

/* Sets an added token, spelled as in the files. */
static void set_added(struct token_list *list, const struct json *token, uint64_t id, uint64_t *turn_end_id)
{
    size_t length;
    const char *text = json_string(json_get(token, "content"), &length);
    bool special = json_bool(json_get(token, "special"), false);
    if (text == NULL)
        return;
    token_list_set(list, id, text, length, -1000.f, special ? TOKEN_CONTROL : TOKEN_USER_DEFINED);
    see(text, length, id, turn_end_id);
}

static void patch_pieces(struct token_list *list, uint64_t n_pieces)
{
    static const char dragon[] = "\xf0\x9f\x90\x89", unused[] = "[UNUSED";
    for (uint64_t i = 0; i < list->n_tokens && i < n_pieces; i++) {
        struct token *token = &list->tokens[i];
        if (token->text == NULL)
            continue;
        if (token->length == 1 && token->text[0] == '\0') {
            token->text = dragon;
            token->length = sizeof dragon - 1;
        }
        if (token->length >= sizeof unused - 1 && memcmp(token->text, unused, sizeof unused - 1) == 0)
            token->type = TOKEN_UNUSED;
    }
}

/* InternLM 2: makes the list, with added_tokens.json's tokens at the end, whatever their ids. */
static bool list_of_2(const struct vocab_input *input, const sentencepiece_model *model,
                      const struct tokenizer_files *files, struct token_list *list, uint64_t *turn_end_id,
                      struct error *error)
{
    uint64_t n_tokens = sentencepiece_vocab_size(input, model), n_added = json_count_members(files->added_tokens);
    if (n_tokens > model->n_pieces)
        return error_set(error, "tokenizer.model: %zu pieces, fewer than vocab_size", model->n_pieces);
    if (!sentencepiece_list(input, model, n_tokens + n_added, list, error))
        return false;
    patch_pieces(list, n_tokens);
    uint64_t id = n_tokens;
    for (struct json_member token = {0}; json_next_member(files->added_tokens, &token); id++)
        token_list_set(list, id, token.key, token.key_length, -1000.f, TOKEN_USER_DEFINED);
    const struct json *decoder = json_get(files->config, "added_tokens_decoder");
    for (struct json_member token = {0}; json_next_member(decoder, &token);)
        set_added(list, token.value, strtoull(token.key, NULL, 10), turn_end_id);
    const struct json *added = json_get(files->tokenizer, "added_tokens");
    for (const struct json *token = json_first(added); token != NULL; token = json_next(token))
        if (json_u64(json_get(token, "id"), &id))
            set_added(list, token, id, turn_end_id);
    return true;
}

static bool list_of_3(const struct vocab_input *input, const sentencepiece_model *model,
                      const struct tokenizer_files *files, struct token_list *list, uint64_t *turn_end_id,
                      struct error *error)
{
    if (!sentencepiece_list(input, model, sentencepiece_vocab_size(input, model), list, error))
        return false;
    sentencepiece_add_file(list, files->added_tokens);
    sentencepiece_add_decoder(list, files->config, true);
    const struct json *decoder = json_get(files->config, "added_tokens_decoder");
    for (struct json_member token = {0}; json_next_member(decoder, &token);) {
        size_t length;
        const char *text = json_string(json_get(token.value, "content"), &length);
        if (text != NULL && json_bool(json_get(token.value, "special"), false))
            see(text, length, strtoull(token.key, NULL, 10), turn_end_id);
    }
    return true;
}

static void write_space_prefix(struct gguf_kvs *kvs, const sentencepiece_model *model,
                               const struct tokenizer_files *files, bool is_2)
{
    static const char key[] = "tokenizer.ggml.add_space_prefix";
    const struct json *given = json_get(files->config, "add_prefix_space");
    if (is_2)
        gguf_set_bool(kvs, key, model->normalizer == NULL || model->normalizer->add_dummy_prefix);
    else if (json_is(given, JSON_TRUE) || json_is(given, JSON_FALSE))
        gguf_set_bool(kvs, key, json_bool(given, false));
}

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const sentencepiece_model *model,
                       const struct tokenizer_files *files, bool is_2, struct error *error)
{
    struct token_list list;
    uint64_t turn_end_id = UINT64_MAX;
    if (!(is_2 ? list_of_2 : list_of_3)(input, model, files, &list, &turn_end_id, error))
        return false;
    token_list_write(&list, "llama", "default", true, kvs);
    write_space_prefix(kvs, model, files, is_2);
    struct special_vocab_options options = {.n_vocab = list.n_tokens};
    bool written = special_vocab_write(kvs, input, files, &options, error);
    bool is_known = gguf_kvs_find(kvs, "tokenizer.ggml.eos_token_id") != NULL;
    if (written && (is_2 ? turn_end_id < list.n_tokens : is_known && turn_end_id <= UINT32_MAX))
        gguf_set_u32(kvs, "tokenizer.ggml.eos_token_id", (uint32_t)turn_end_id);
    token_list_free(&list);
    return written;
}

static bool write_2(struct gguf_kvs *kvs, const struct vocab_input *input, const struct sentencepiece *given,
                    struct error *error)
{
    return write_keys(kvs, input, given->model, given->files, true, error);
}

static bool write_3(struct gguf_kvs *kvs, const struct vocab_input *input, const struct sentencepiece *given,
                    struct error *error)
{
    return write_keys(kvs, input, given->model, given->files, false, error);
}

const struct vocab internlm2_vocab = {
    .name = "SentencePiece of InternLM 2", .file = "tokenizer.model", .write_pieces = write_2};
const struct vocab internlm3_vocab = {
    .name = "SentencePiece of InternLM 3", .file = "tokenizer.model", .write_pieces = write_3};

static bool write_saved(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                        bool is_2, struct error *error)
{
    const struct added_token *end = hf_added_token(vocabulary, turn_end, sizeof turn_end - 1);
    if (!hf_spm_write(kvs, input, vocabulary, (struct hf_spm_form){.by_flags = is_2}, error))
        return false;
    if (end != NULL && end->id <= UINT32_MAX)
        gguf_set_u32(kvs, "tokenizer.ggml.eos_token_id", (uint32_t)end->id);
    return true;
}

static bool write_saved_2(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                          struct error *error)
{
    return write_saved(kvs, input, vocabulary, true, error);
}

static bool write_saved_3(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                          struct error *error)
{
    return write_saved(kvs, input, vocabulary, false, error);
}

const struct vocab hf_internlm2_vocab = {.name = "SentencePiece of InternLM 2's tokenizer.json",
                                         .file = "tokenizer.json",
                                         .fits = hf_spm_fits,
                                         .write = write_saved_2};
const struct vocab hf_internlm3_vocab = {.name = "SentencePiece of InternLM 3's tokenizer.json",
                                         .file = "tokenizer.json",
                                         .fits = hf_spm_fits,
                                         .write = write_saved_3};
