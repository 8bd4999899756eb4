/* "gpt2": byte-level byte pair encoding, and models that give some of its tokens a role. */
#include "base/text.h"
#include "models/tokenizers/hf_kind.h"
#include "models/tokenizers/hf_vocabulary.h"
#include "models/tokenizers/ranked.h"

#include <inttypes.h>
#include <string.h>

/* "gpt2": byte-level byte pair encoding, from tokenizer.json, or from vocab.json and merges.txt. */

static bool has_only_spaces(const struct token *token)
{
    size_t n_spaces = 0;
    while (n_spaces < token->length && token->text[n_spaces] == ' ')
        n_spaces++;
    return n_spaces == token->length;
}

/* Makes added tokens of spaces normal ones: mmBERT's tokenizer never matches them. */
static void make_spaces_normal(struct token_list *list)
{
    static const char space[] = "\xe2\x96\x81";
    for (struct token *token = list->tokens; token < list->tokens + list->n_tokens; token++) {
        if (token->type != TOKEN_USER_DEFINED || token->length == 0 || !has_only_spaces(token))
            continue;
        char *text = arena_array(list->arena, token->length, sizeof space - 1);
        for (size_t i = 0; i < token->length; i++)
            memcpy(&text[i * (sizeof space - 1)], space, sizeof space - 1);
        *token = (struct token){text, token->length * (sizeof space - 1), token->score, TOKEN_NORMAL};
    }
}

static bool is_mmbert(const struct gguf_kvs *kvs, const struct vocab_input *input)
{
    struct arena *arena = arena_new();
    const char *pre = gguf_get_text(kvs, "tokenizer.ggml.pre", arena);
    bool is = strcmp(input->architecture, "modern-bert") == 0 && pre != NULL && strcmp(pre, "mmbert") == 0;
    arena_free(arena);
    return is;
}

bool bpe_write(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
               const struct special_id *ids, size_t n_ids, struct error *error)
{
    struct token_list list;
    uint64_t n_tokens = vocabulary->n_ids;
    json_u64(hparams_get(input->hparams, "vocab_size"), &n_tokens);
    if (!hf_count_fits(input, vocabulary, n_tokens, error) || !hf_token_list(vocabulary, n_tokens, &list, error))
        return false;
    gguf_set_text(kvs, "tokenizer.ggml.model", "gpt2");
    bool named = pre_write(kvs, input, vocabulary, error);
    if (named && is_mmbert(kvs, input))
        make_spaces_normal(&list);
    token_list_write(&list, NULL, NULL, false, kvs);
    token_list_free(&list);
    if (!named)
        return false;
    const struct special_vocab_options options = {.load_merges = true, .ids = ids, .n_ids = n_ids};
    return special_vocab_write(kvs, input, vocabulary->files, &options, error);
}

static bool bpe_write_keys(struct gguf_kvs *kvs, const struct vocab_input *input,
                           const struct hf_vocabulary *vocabulary, struct error *error)
{
    return bpe_write(kvs, input, vocabulary, NULL, 0, error);
}

bool bpe_fits(const struct json *tokenizer)
{
    enum hf_kind kind = hf_kind_of(tokenizer);
    return kind == HF_BYTE_LEVEL || kind == HF_OTHER;
}

const struct vocab bpe_vocab = {
    .name = "byte-level BPE", .file = "tokenizer.json", .fits = bpe_fits, .write = bpe_write_keys};

/* Byte-level BPE with the files' flags for added tokens: special or not, whatever their texts look like.
 * conversion/llada.py, dream.py. */

static bool write_plain_keys(struct gguf_kvs *kvs, const struct vocab_input *input,
                             const struct hf_vocabulary *vocabulary, struct error *error)
{
    struct hf_vocabulary plain = *vocabulary;
    plain.keeps_added = true;
    return bpe_write(kvs, input, &plain, NULL, 0, error);
}

const struct vocab plain_bpe_vocab = {
    .name = "plain byte-level BPE", .file = "tokenizer.json", .fits = bpe_fits, .write = write_plain_keys};

/* Laguna's byte-level BPE: the end of the assistant's turn is a control token, although the files do not say so.
 * conversion/laguna.py. */

static bool write_laguna_keys(struct gguf_kvs *kvs, const struct vocab_input *input,
                              const struct hf_vocabulary *vocabulary, struct error *error)
{
    static const char turn_end[] = "</assistant>";
    struct hf_vocabulary marked = *vocabulary;
    marked.added = arena_copy(marked.arena, vocabulary->added, marked.n_added * sizeof *marked.added);
    for (size_t i = 0; i < marked.n_added; i++) {
        struct added_token *token = &marked.added[i];
        if (token->length == sizeof turn_end - 1 && memcmp(token->text, turn_end, token->length) == 0)
            token->special = true;
    }
    return bpe_write(kvs, input, &marked, NULL, 0, error);
}

const struct vocab laguna_vocab = {
    .name = "byte-level BPE of Laguna", .file = "tokenizer.json", .write = write_laguna_keys};

/* GLM's tokenizers and related ones: byte-level BPE with ids for the tokens that begin and end turns, whose role the
 * files do not state. conversion/base.py (_set_vocab_glm), glm.py. */

struct offer {
    const char *type, *text;
};

static bool write_with(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       const struct offer *offers, struct error *error)
{
    struct special_id ids[SPECIAL_IDS];
    size_t n_ids = 0;
    for (const struct offer *offer = offers; offer->type != NULL; offer++) {
        const struct added_token *token = hf_added_token(vocabulary, offer->text, strlen(offer->text));
        if (token == NULL)
            return error_set(error, "the tokenizer has no added token '%s'", offer->text);
        ids[n_ids++] = (struct special_id){offer->type, token->id};
    }
    return bpe_write(kvs, input, vocabulary, ids, n_ids, error);
}

static bool write_glm(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                      struct error *error)
{
    static const struct offer offers[] = {
        {"bos", "[gMASK]"}, {"eot", "<|user|>"}, {"unk", "<|endoftext|>"}, {"eom", "<|observation|>"}, {0}};
    return write_with(kvs, input, vocabulary, offers, error);
}

static bool write_solar(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                        struct error *error)
{
    static const struct offer offers[] = {
        {"eos", "<|endoftext|>"}, {"eot", "<|endoftext|>"}, {"unk", "<unk>"}, {"bos", "<|startoftext|>"}, {0}};
    return write_with(kvs, input, vocabulary, offers, error);
}

static bool write_glm4(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    static const struct offer offers[] = {
        {"eos", "<|endoftext|>"}, {"eot", "<|user|>"}, {"unk", "<|endoftext|>"}, {"bos", "<|endoftext|>"}, {0}};
    return write_with(kvs, input, vocabulary, offers, error);
}

static bool write_chatglm(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                          struct error *error)
{
    static const struct offer offers[] = {{"eos", "<|endoftext|>"}, {"eot", "<|user|>"}, {"unk", "<|endoftext|>"}, {0}};
    return write_with(kvs, input, vocabulary, offers, error);
}

static bool write_dots3(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                        struct error *error)
{
    static const struct offer offers[] = {{"eot", "<|endofassistant|>"}, {0}};
    return write_with(kvs, input, vocabulary, offers, error);
}

/* Recognizes GLM-ASR, whose text model declares itself a Llama. */
static bool is_glm_asr(const struct hparams *hparams)
{
    return json_string_is(json_first(json_get(hparams_raw(hparams), "architectures")), "GlmasrModel");
}

const struct vocab glm_vocab = {.name = "GLM's byte-level BPE", .file = "tokenizer.json", .write = write_glm};
const struct vocab solar_vocab = {
    .name = "Solar Open's byte-level BPE", .file = "tokenizer.json", .write = write_solar};
const struct vocab dots3_vocab = {
    .name = "dots3-note's byte-level BPE", .file = "tokenizer.json", .write = write_dots3};
const struct vocab glm4_vocab = {.name = "GLM-4's byte-level BPE", .file = "tokenizer.json", .write = write_glm4};
const struct vocab glm_asr_vocab = {
    .name = "GLM-ASR's byte-level BPE", .file = "tokenizer.json", .applies = is_glm_asr, .write = write_glm4};
const struct vocab chatglm_vocab = {
    .name = "ChatGLM's byte-level BPE", .file = "tokenizer.json", .write = write_chatglm};

/* Hunyuan: byte-level BPE, from tokenizer.json or from the ranks of hy.tiktoken. The tokens that begin and end texts
 * and turns differ from config.json's. conversion/hunyuan.py; the tokenization_hy.py of these repositories. */

static void set_id(struct gguf_kvs *kvs, const char *key, const struct json *value)
{
    uint64_t id;
    if (json_u64(value, &id) && id <= UINT32_MAX)
        gguf_set_u32(kvs, key, (uint32_t)id);
}

/* Returns config.json's values for the tokenizer. */
static const struct hparams *told_by(const struct vocab_input *input)
{
    return follows(input->references, HUNYUAN_DRAFTS) ? input->owner : input->hparams;
}

static bool set_ends(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    struct document *generation;
    if (!document_open(input->checkpoint, "generation_config.json", &generation, error))
        return false;
    set_id(kvs, "tokenizer.ggml.eos_token_id", hparams_get(told_by(input), "eod_token_id"));
    const struct json *ends = json_get(document_root(generation), "eos_token_id");
    if (json_is(ends, JSON_ARRAY) && json_count(ends) >= 2)
        set_id(kvs, "tokenizer.ggml.eot_token_id", json_first(ends));
    document_close(generation);
    return true;
}

/* Writes the keys; a padding token below 0 means none. */
static bool hunyuan_write_keys(struct gguf_kvs *kvs, const struct vocab_input *input,
                               const struct hf_vocabulary *vocabulary, struct error *error)
{
    int64_t padding = 0;
    json_i64(hparams_get(told_by(input), "pad_token_id"), &padding);
    if (!bpe_write(kvs, input, vocabulary, NULL, 0, error))
        return false;
    if (padding < 0)
        gguf_kvs_remove(kvs, "tokenizer.ggml.padding_token_id");
    return set_ends(kvs, input, error);
}

/* Special tokens, which are constants of the tokenizer's code; it has vocab_size tokens. */
static const char *const specials[] = {"<|endoftext|>", "<|startoftext|>", "<|bos|>", "<|eos|>", "<|pad|>", NULL};

static enum vocab_result add_ranks(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    static const struct ranked_kind kind = {"hy.tiktoken", TIKTOKEN_RANKS_COUNTED, "hunyuan", .specials = specials};
    return ranked_add(kvs, input, &kind, error);
}

/* Adds a dense model's vocabulary. The one dense model with such a file names the wrong BOS token in config.json. */
static enum vocab_result add_dense(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    enum { WIDTH_OF_7B = 4096, BEGIN_OF_7B = 127958 };
    uint64_t width = 0;
    enum vocab_result result = add_ranks(kvs, input, error);
    if (result != VOCAB_ADDED)
        return result;
    json_u64(hparams_get(input->hparams, "hidden_size"), &width);
    if (width == WIDTH_OF_7B)
        gguf_set_u32(kvs, "tokenizer.ggml.bos_token_id", BEGIN_OF_7B);
    return set_ends(kvs, input, error) ? VOCAB_ADDED : VOCAB_FAILED;
}

static enum vocab_result add_moe(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    enum { BEGIN = 127959 };
    enum vocab_result result = add_ranks(kvs, input, error);
    if (result == VOCAB_ADDED)
        gguf_set_u32(kvs, "tokenizer.ggml.bos_token_id", BEGIN);
    return result;
}

const struct vocab hunyuan_vocab = {
    .name = "byte-level BPE of Hunyuan", .file = "tokenizer.json", .write = hunyuan_write_keys};
const struct vocab hunyuan_ranks_vocab = {
    .name = "ranked tokens of Hunyuan, dense", .file = "hy.tiktoken", .add = add_dense};
const struct vocab hunyuan_moe_ranks_vocab = {
    .name = "ranked tokens of Hunyuan with experts", .file = "hy.tiktoken", .add = add_moe};

/* "gpt2" with the codes of a speech model after the tokens of text: Qwen3-TTS. conversion/qwen3tts.py.
 *
 * talker_config names codes: 2149 is "<|codec_bos|>" by "codec_bos_id": 2149. All others are "<|codec_N|>". */

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

static bool codes_write_keys(struct gguf_kvs *kvs, const struct vocab_input *input,
                             const struct hf_vocabulary *vocabulary, struct error *error)
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
    .name = "byte-level BPE with codes", .file = "tokenizer.json", .fits = bpe_fits, .write = codes_write_keys};
