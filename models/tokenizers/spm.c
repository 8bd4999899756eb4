/* "llama" from tokenizer.model (SentencePiece), and models whose own code adds tokens to it. */
#include "models/tokenizers/hf_kind.h"
#include "models/tokenizers/sentencepiece.h"
#include "models/tokenizers/vocab.h"

#include <stdlib.h>
#include <string.h>

/* "llama" from tokenizer.model: SentencePiece and the tokens that the Hugging Face files add, which Phi-3 adds in its
 * own way. */

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

static bool spm_write_pieces(struct gguf_kvs *kvs, const struct vocab_input *input, const struct sentencepiece *given,
                             struct error *error)
{
    return write_list(kvs, input, given, false, error);
}

static bool write_phi3(struct gguf_kvs *kvs, const struct vocab_input *input, const struct sentencepiece *given,
                       struct error *error)
{
    return write_list(kvs, input, given, true, error);
}

const struct vocab spm_vocab = {.name = "SentencePiece", .file = "tokenizer.model", .write_pieces = spm_write_pieces};
const struct vocab phi3_vocab = {
    .name = "SentencePiece with Phi-3's added tokens", .file = "tokenizer.model", .write_pieces = write_phi3};

/* "llama" from tokenizer.model, with tokens of tokenizer_config.json in place of pieces. conversion/arctic.py. */

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

static bool arctic_write_pieces(struct gguf_kvs *kvs, const struct vocab_input *input,
                                const struct sentencepiece *given, struct error *error)
{
    struct token_list list;
    uint64_t n_tokens = sentencepiece_vocab_size(input, given->model);
    if (!sentencepiece_list(input, given->model, n_tokens, &list, error))
        return false;
    add_decoder(&list, given->files->config);
    return sentencepiece_write(kvs, input, "default", &list, given->files, error);
}

const struct vocab arctic_vocab = {
    .name = "SentencePiece of Arctic", .file = "tokenizer.model", .write_pieces = arctic_write_pieces};

/* "llama" from the SentencePiece model of ChatGLM 3: its pieces, then the tokens that ChatGLM's code names, then unused
 * ones. conversion/chatglm.py; the tokenization_chatglm.py of these repositories. */

static const char *const named_tokens[] = {"[MASK]",   "[gMASK]",       "[sMASK]",        "sop", "eop", "<|system|>",
                                           "<|user|>", "<|assistant|>", "<|observation|>"};
enum { N_NAMED_TOKENS = sizeof named_tokens / sizeof *named_tokens };

bool is_chatglm3(const struct hparams *hparams)
{
    const char *name = json_string(hparams_get(hparams, "_name_or_path"), NULL);
    return name != NULL && strstr(name, "THUDM/chatglm3-6b") != NULL;
}

/* Gives the first three pieces fixed texts, whatever they are; the BOS, EOS and unknown pieces after these have no
 * text. */
static void set_pieces(struct token_list *list, const sentencepiece_model *model)
{
    static const char *const first[] = {"<unk>", "<bos>", "<eos>"};
    static const enum sentencepiece_part nameless[] = {SENTENCEPIECE_BEGIN, SENTENCEPIECE_END, SENTENCEPIECE_UNKNOWN};
    for (uint64_t id = 0; id < sizeof first / sizeof *first && id < list->n_tokens && id < model->n_pieces; id++) {
        list->tokens[id].text = first[id];
        list->tokens[id].length = strlen(first[id]);
    }
    for (size_t i = 0; i < sizeof nameless / sizeof *nameless; i++) {
        uint64_t id = sentencepiece_id(model, nameless[i]);
        if (id >= sizeof first / sizeof *first && id < list->n_tokens)
            token_list_set(list, id, "", 0, 0, list->tokens[id].type);
    }
}

static bool make_list(const struct vocab_input *input, const sentencepiece_model *model, struct token_list *list,
                      struct error *error)
{
    uint64_t n_tokens = model->n_pieces + N_NAMED_TOKENS;
    json_u64(hparams_get(input->hparams, "padded_vocab_size"), &n_tokens);
    if (!sentencepiece_list(input, model, n_tokens, list, error))
        return false;
    set_pieces(list, model);
    for (uint64_t id = model->n_pieces; id < n_tokens; id++)
        list->tokens[id].score = 0;
    for (size_t i = 0; i < N_NAMED_TOKENS; i++)
        token_list_set(list, model->n_pieces + i, named_tokens[i], strlen(named_tokens[i]), 0, TOKEN_CONTROL);
    return true;
}

static bool chatglm3_write_pieces(struct gguf_kvs *kvs, const struct vocab_input *input,
                                  const struct sentencepiece *given, struct error *error)
{
    struct token_list list;
    return make_list(input, given->model, &list, error) &&
           sentencepiece_write(kvs, input, "chatglm-spm", &list, given->files, error);
}

const struct vocab chatglm3_vocab = {.name = "SentencePiece of ChatGLM 3",
                                     .file = "tokenizer.model",
                                     .applies = is_chatglm3,
                                     .write_pieces = chatglm3_write_pieces};

/* "llama" from InternLM's SentencePiece models, where the end of a turn also ends a text. conversion/internlm.py. */

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
