#include "models/tokenizers/unigram.h"

#include "base/encodings.h"
#include "models/tokenizers/hf_kind.h"

bool hf_unigram_fits(const struct json *tokenizer)
{
    return hf_kind_of(tokenizer) == HF_UNIGRAM;
}

/* Returns the step of a normalizer that has a charsmap, or the normalizer. */
static const struct json *find_charsmap(const struct json *normalizer)
{
    const struct json *each = json_first(json_get(normalizer, "normalizers"));
    while (each != NULL && json_get(each, "precompiled_charsmap") == NULL)
        each = json_next(each);
    return each != NULL ? each : normalizer;
}

void hf_unigram_write_normalizer(struct gguf_kvs *kvs, const struct json *tokenizer)
{
    size_t length;
    const struct json *step = find_charsmap(json_get(tokenizer, "normalizer"));
    const char *text = json_string(json_get(step, "precompiled_charsmap"), &length);
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

void hf_unigram_set(struct token_list *list, const struct hf_vocabulary *vocabulary)
{
    uint64_t id = 0;
    for (const struct json *entry = json_first(vocabulary->vocab); entry != NULL; entry = json_next(entry), id++) {
        size_t length;
        double score = 0;
        const char *text = json_string(json_at(entry, 0), &length);
        json_double(json_at(entry, 1), &score);
        if (text != NULL)
            token_list_set(list, id, text, length, (float)score, type_of(vocabulary, text, length, id));
    }
}

static bool joins_spaces(const struct json *normalizer)
{
    const struct json *first = json_first(json_get(normalizer, "normalizers"));
    for (const struct json *each = first != NULL ? first : normalizer; each != NULL; each = json_next(each))
        if (json_string_is(json_get(each, "type"), "Replace") &&
            json_string_is(json_get(json_get(each, "pattern"), "Regex"), " {2,}"))
            return true;
    return false;
}

bool hf_unigram_removes_spaces(const struct json *tokenizer)
{
    return hf_has_step(json_get(tokenizer, "pre_tokenizer"), "pretokenizers", "WhitespaceSplit") ||
           joins_spaces(json_get(tokenizer, "normalizer"));
}

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    const struct json *tokenizer = vocabulary->files->tokenizer;
    struct token_list list;
    uint64_t n_tokens = 0, unknown;
    json_u64(hparams_get(input->hparams, "vocab_size"), &n_tokens);
    n_tokens = n_tokens != 0 ? n_tokens : vocabulary->n_ids;
    if (!hf_count_fits(input, vocabulary, n_tokens, error) || !token_list_init(&list, n_tokens, -10000.f, error))
        return false;
    hf_unigram_set(&list, vocabulary);
    token_list_write(&list, "t5", "default", true, kvs);
    gguf_set_bool(kvs, "tokenizer.ggml.add_space_prefix", hf_adds_prefix(tokenizer));
    gguf_set_bool(kvs, "tokenizer.ggml.remove_extra_whitespaces", hf_unigram_removes_spaces(tokenizer));
    hf_unigram_write_normalizer(kvs, tokenizer);
    struct special_vocab_options options = {.n_vocab = list.n_tokens};
    token_list_free(&list);
    if (!special_vocab_write(kvs, input, vocabulary->files, &options, error))
        return false;
    if (json_u64(json_get(vocabulary->model, "unk_id"), &unknown) && unknown <= UINT32_MAX)
        gguf_set_u32(kvs, "tokenizer.ggml.unknown_token_id", (uint32_t)unknown);
    return true;
}

const struct vocab hf_unigram_vocab = {
    .name = "Unigram", .file = "tokenizer.json", .fits = hf_unigram_fits, .write = write_keys};
