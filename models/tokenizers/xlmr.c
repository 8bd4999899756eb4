/* "t5" for XLM-RoBERTa: a SentencePiece Unigram model with ids moved to make room for four control tokens, or a
 * tokenizer.json of that kind. */
#include "base/base64.h"
#include "models/tokenizers/hf_vocabulary.h"
#include "models/tokenizers/unigram.h"

#include <string.h>

static uint64_t larger_vocab_size(const struct vocab_input *input, uint64_t n_tokens)
{
    uint64_t wanted = 0;
    json_u64(hparams_get(input->hparams, "vocab_size"), &wanted);
    return wanted > n_tokens ? wanted : n_tokens;
}

static void write_list(struct gguf_kvs *kvs, const struct vocab_input *input, const struct token_list *list,
                       bool add_prefix, bool remove_spaces)
{
    uint64_t n_types = 1;
    json_u64(hparams_get(input->hparams, "type_vocab_size"), &n_types);
    token_list_write(list, "t5", "default", true, kvs);
    gguf_set_bool(kvs, "tokenizer.ggml.add_space_prefix", add_prefix);
    gguf_set_u32(kvs, "tokenizer.ggml.token_type_count", (uint32_t)n_types);
    gguf_set_bool(kvs, "tokenizer.ggml.remove_extra_whitespaces", remove_spaces);
}

/* Puts <s>, <pad>, </s> and <unk> before the pieces after the model's own three; the list's last token drops out. */
static void realign(struct token_list *list)
{
    static const struct token front[] = {
        {"<s>", 3, 0, TOKEN_CONTROL},
        {"<pad>", 5, 0, TOKEN_CONTROL},
        {"</s>", 4, 0, TOKEN_CONTROL},
        {"<unk>", 5, 0, TOKEN_UNKNOWN},
    };
    if (list->n_tokens < 4)
        return;
    for (uint64_t i = 0; i < list->n_tokens; i++) /* unused tokens keep the names of their ids */
        if (list->tokens[i].text == NULL) {
            list->tokens[i].text = arena_printf(list->arena, "[PAD%llu]", (unsigned long long)i);
            list->tokens[i].length = strlen(list->tokens[i].text);
        }
    memmove(list->tokens + 4, list->tokens + 3, (list->n_tokens - 4) * sizeof *list->tokens);
    memcpy(list->tokens, front, sizeof front);
}

static bool write_model(struct gguf_kvs *kvs, const struct vocab_input *input, const sentencepiece_model *model,
                        struct error *error)
{
    enum { NOMIC_MASK = 250001 };
    struct tokenizer_files files;
    struct token_list list;
    if (model->trainer != NULL && model->trainer->model_type != SENTENCEPIECE_UNIGRAM)
        return error_set(error, "sentencepiece.bpe.model: not a Unigram model");
    if (!tokenizer_files_load(input->checkpoint, &files, error))
        return false;
    bool written = sentencepiece_list(input, model, larger_vocab_size(input, model->n_pieces), &list, error);
    if (written) {
        realign(&list);
        if (strcmp(input->architecture, "nomic-bert-moe") == 0)
            token_list_set(&list, NOMIC_MASK, "<mask>", 6, 0, TOKEN_CONTROL);
        write_list(kvs, input, &list, unigram_adds_prefix(model), unigram_removes_spaces(model));
        unigram_write_normalizer(kvs, model);
        struct special_vocab_options options = {.n_vocab = list.n_tokens};
        written = special_vocab_write(kvs, input, &files, &options, error);
        token_list_free(&list);
    }
    tokenizer_files_free(&files);
    return written;
}

/* Writes the precompiled charsmap. The converter fails if the normalizer has other steps, too. */
static void write_charsmap(struct gguf_kvs *kvs, const struct json *normalizer)
{
    size_t length;
    const struct json *each = json_first(json_get(normalizer, "normalizers"));
    while (each != NULL && json_get(each, "precompiled_charsmap") == NULL)
        each = json_next(each);
    const char *text = json_string(json_get(each != NULL ? each : normalizer, "precompiled_charsmap"), &length);
    if (text == NULL)
        return;
    struct arena *arena = arena_new();
    struct buffer elements = {0};
    const void *bytes = base64_decode(arena, text, length, &length);
    if (bytes != NULL) {
        buffer_append(&elements, bytes, length);
        gguf_set_array(kvs, "tokenizer.ggml.precompiled_charsmap", GGUF_U8, length, &elements);
    }
    arena_free(arena);
}

/* Returns the type of a token of tokenizer.json: unknown, control or added. */
static enum token_type type_of(const struct hf_vocabulary *vocabulary, const char *text, size_t length, uint64_t id)
{
    size_t unknown_length;
    uint64_t unknown = 3;
    const char *name = token_content(json_get(vocabulary->files->config, "unk_token"), &unknown_length);
    json_u64(json_get(vocabulary->model, "unk_id"), &unknown);
    const struct added_token *added = name != NULL ? hf_added_token(vocabulary, name, unknown_length) : NULL;
    if (id == (added != NULL ? added->id : unknown))
        return TOKEN_UNKNOWN;
    added = hf_added_token(vocabulary, text, length);
    if (added == NULL)
        return TOKEN_NORMAL;
    return added->special ? TOKEN_CONTROL : TOKEN_USER_DEFINED;
}

static bool is_unigram(const struct json *tokenizer)
{
    return json_string_is(json_get(json_get(tokenizer, "model"), "type"), "Unigram");
}

static bool is_splitting(const struct json *step)
{
    return json_string_is(json_get(step, "type"), "WhitespaceSplit");
}

static bool is_joining(const struct json *step)
{
    return json_string_is(json_get(step, "type"), "Replace") &&
           json_string_is(json_get(json_get(step, "pattern"), "Regex"), " {2,}");
}

/* Reports whether a step of tokenizer.json, or one of its steps in `list`, is of a kind. */
static bool has_step(const struct json *step, const char *list, bool (*is_kind)(const struct json *step))
{
    const struct json *each = json_first(json_get(step, list));
    while (each != NULL && !is_kind(each))
        each = json_next(each);
    return each != NULL || is_kind(step);
}

/* Reports whether runs of spaces count as one. The converter asks clean_up_tokenization_spaces of
 * tokenizer_config.json, which is about decoding and which transformers 5 does not save. */
static bool removes_spaces(const struct vocab_input *input, const struct tokenizer_files *files)
{
    if (json_bool(json_get(files->config, "clean_up_tokenization_spaces"), false))
        return true;
    if (!has_step(json_get(files->tokenizer, "pre_tokenizer"), "pretokenizers", is_splitting) &&
        !has_step(json_get(files->tokenizer, "normalizer"), "normalizers", is_joining))
        return false;
    checkpoint_note(input->checkpoint, SUBJECT_GGUF,
                    "tokenizer.json removes extra spaces, but tokenizer_config.json has no "
                    "clean_up_tokenization_spaces, so the converter writes remove_extra_whitespaces false; wfs writes "
                    "true");
    return true;
}

static bool write_json(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    const struct tokenizer_files *files = vocabulary->files;
    struct token_list list;
    uint64_t id = 0, n_tokens = larger_vocab_size(input, vocabulary->n_model_tokens);
    if (!hf_count_fits(input, vocabulary, n_tokens, error) || !token_list_init(&list, n_tokens, -10000.f, error))
        return false;
    for (const struct json *entry = json_first(vocabulary->vocab); entry != NULL; entry = json_next(entry), id++) {
        size_t length;
        double score = 0;
        const char *text = json_string(json_at(entry, 0), &length);
        json_double(json_at(entry, 1), &score);
        if (text != NULL)
            token_list_set(&list, id, text, length, (float)score, type_of(vocabulary, text, length, id));
    }
    write_list(kvs, input, &list, json_bool(json_get(files->config, "add_prefix_space"), false),
               removes_spaces(input, files));
    write_charsmap(kvs, json_get(files->tokenizer, "normalizer"));
    struct special_vocab_options options = {.n_vocab = list.n_tokens};
    token_list_free(&list);
    return special_vocab_write(kvs, input, files, &options, error);
}

static enum vocab_result add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    sentencepiece_model *model;
    enum vocab_result result = sentencepiece_load(input->checkpoint, "sentencepiece.bpe.model", &model, error);
    if (result == VOCAB_ABSENT)
        return hf_vocabulary_add(kvs, input, is_unigram, write_json, error);
    if (result != VOCAB_ADDED)
        return result;
    if (!write_model(kvs, input, model, error))
        result = VOCAB_FAILED;
    sentencepiece_free(model);
    return result;
}

const struct vocab xlmr_vocab = {.name = "XLM-RoBERTa's Unigram", .file = "tokenizer.json", .add = add};
