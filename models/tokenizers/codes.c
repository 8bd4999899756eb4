/* "gpt2" with the codes of a speech model after the tokens of text: Qwen3-TTS. conversion/qwen3tts.py.
 *
 * talker_config names codes: 2149 is "<|codec_bos|>" by "codec_bos_id": 2149. All others are "<|codec_N|>". */
#include "base/text.h"
#include "models/tokenizers/hf_kind.h"
#include "models/tokenizers/hf_vocabulary.h"

#include <inttypes.h>
#include <string.h>

struct codes {
    struct token_list *list; /* its last tokens are the codes */
    uint64_t n;
};

static void set_code(const struct codes *codes, uint64_t code, const char *name)
{
    token_list_set(codes->list, codes->list->n_tokens - codes->n + code, name, strlen(name), 0, TOKEN_CONTROL);
}

/* Names the code `number`, if it is one: "<|codec_language_chinese|>" for the key codec_language_id and the member
 * chinese, which may be NULL. */
static bool name_code(const struct codes *codes, const struct json *number, const struct json_member *key,
                      const struct json_member *member, struct error *error)
{
    int64_t code;
    if (!json_i64(number, &code))
        return true;
    if (code < 0 || (uint64_t)code >= codes->n)
        return error_set(error, "config.json: %s of talker_config is %" PRId64 ", but there are %" PRIu64 " codes",
                         key->key, code, codes->n);
    int length = (int)(key->key_length - strlen("_id"));
    struct arena *arena = codes->list->arena;
    set_code(codes, (uint64_t)code,
             member == NULL ? arena_printf(arena, "<|%.*s|>", length, key->key)
                            : arena_printf(arena, "<|%.*s_%s|>", length, key->key, member->key));
    return true;
}

static bool name_codes(const struct codes *codes, const struct json *talker, struct error *error)
{
    for (uint64_t i = 0; i < codes->n; i++)
        set_code(codes, i, arena_printf(codes->list->arena, "<|codec_%" PRIu64 "|>", i));
    for (struct json_member key = {0}; json_next_member(talker, &key);) {
        if (!text_ends_with(key.key, "_id"))
            continue;
        if (!name_code(codes, key.value, &key, NULL, error))
            return false;
        for (struct json_member member = {0}; json_next_member(key.value, &member);)
            if (!name_code(codes, member.value, &key, &member, error))
                return false;
    }
    return true;
}

/* Gets the number of tokens of text, and of codes. */
static bool count_tokens(const struct json *talker, uint64_t *ret_text, uint64_t *ret_codes, struct error *error)
{
    return (json_u64(json_get(talker, "text_vocab_size"), ret_text) && *ret_text <= TOKEN_LIST_MAX &&
            json_u64(json_get(talker, "vocab_size"), ret_codes) && *ret_codes <= TOKEN_LIST_MAX) ||
           error_set(error,
                     "config.json: text_vocab_size or vocab_size of talker_config is missing, or not a number up "
                     "to %d",
                     TOKEN_LIST_MAX);
}

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    const struct json *talker = json_get(hparams_raw(input->hparams), "talker_config");
    struct token_list list;
    struct codes codes = {.list = &list};
    uint64_t n_text;
    if (!count_tokens(talker, &n_text, &codes.n, error) || !hf_count_fits(input, vocabulary, n_text + codes.n, error))
        return false;
    if (vocabulary->n_ids > n_text)
        return error_set(error, "the tokenizer has ids up to %" PRIu64 ", but text_vocab_size is %" PRIu64,
                         vocabulary->n_ids - 1, n_text);
    if (!hf_token_list(vocabulary, n_text + codes.n, &list, error))
        return false;
    gguf_set_text(kvs, "tokenizer.ggml.model", "gpt2");
    bool is_named = name_codes(&codes, talker, error) && pre_write(kvs, input, vocabulary, error);
    token_list_write(&list, NULL, NULL, false, kvs);
    token_list_free(&list);
    const struct special_vocab_options options = {.load_merges = true};
    if (!is_named || !special_vocab_write(kvs, input, vocabulary->files, &options, error))
        return false;
    gguf_kvs_remove(kvs, "tokenizer.chat_template"); /* such a model does not chat */
    return true;
}

const struct vocab codes_vocab = {
    .name = "byte-level BPE with codes", .file = "tokenizer.json", .fits = bpe_fits, .write = write_keys};
