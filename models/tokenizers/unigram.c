/* "t5": Unigram vocabularies. */
#include "models/tokenizers/unigram.h"

#include "base/encodings.h"
#include "models/tokenizers/hf_kind.h"
#include "models/tokenizers/sentencepiece.h"

#include <string.h>

/* "t5": T5's Unigram SentencePiece model. */

void unigram_write_normalizer(struct gguf_kvs *kvs, const sentencepiece_model *model)
{
    const Wfs__Sentencepiece__Model__Normalizer *normalizer = model->normalizer;
    if (normalizer == NULL || !normalizer->has_precompiled_charsmap)
        return;
    struct buffer bytes = {0};
    buffer_append(&bytes, normalizer->precompiled_charsmap.data, normalizer->precompiled_charsmap.len);
    gguf_set_array(kvs, "tokenizer.ggml.precompiled_charsmap", GGUF_U8, normalizer->precompiled_charsmap.len, &bytes);
}

bool unigram_adds_prefix(const sentencepiece_model *model)
{
    return model->normalizer == NULL || model->normalizer->add_dummy_prefix;
}

bool unigram_removes_spaces(const sentencepiece_model *model)
{
    return model->normalizer == NULL || model->normalizer->remove_extra_whitespaces;
}

static bool t5_write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const sentencepiece_model *model,
                          struct error *error)
{
    struct tokenizer_files files;
    struct token_list list;
    if (!tokenizer_files_load(input->checkpoint, &files, error))
        return false;
    bool written = sentencepiece_list(input, model, sentencepiece_vocab_size(input, model), &list, error);
    if (written) {
        sentencepiece_add_file(&list, files.added_tokens);
        token_list_write(&list, "t5", "default", true, kvs);
        gguf_set_bool(kvs, "tokenizer.ggml.add_space_prefix", unigram_adds_prefix(model));
        gguf_set_bool(kvs, "tokenizer.ggml.remove_extra_whitespaces", unigram_removes_spaces(model));
        unigram_write_normalizer(kvs, model);
        struct special_vocab_options options = {.n_vocab = list.n_tokens};
        written = special_vocab_write(kvs, input, &files, &options, error);
        token_list_free(&list);
    }
    tokenizer_files_free(&files);
    return written;
}

static enum vocab_result t5_add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    sentencepiece_model *model;
    enum vocab_result result = sentencepiece_load(input->checkpoint, "tokenizer.model", &model, error);
    if (result == VOCAB_ABSENT)
        result = sentencepiece_load(input->checkpoint, "spiece.model", &model, error);
    if (result != VOCAB_ADDED)
        return result;
    if (model->trainer != NULL && model->trainer->model_type == SENTENCEPIECE_BPE)
        result = VOCAB_ABSENT; /* an ordinary SentencePiece vocabulary */
    else if (!t5_write_keys(kvs, input, model, error))
        result = VOCAB_FAILED;
    sentencepiece_free(model);
    return result;
}

const struct vocab t5_vocab = {.name = "SentencePiece Unigram", .file = "spiece.model", .add = t5_add};

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

/* Sets the added tokens that the model lacks. */
static void set_added(struct token_list *list, const struct hf_vocabulary *vocabulary)
{
    for (size_t i = 0; i < vocabulary->n_added; i++) {
        const struct added_token *added = &vocabulary->added[i];
        if (added->id >= vocabulary->n_model_tokens)
            token_list_set(list, added->id, added->text, added->length, 0,
                           added->special ? TOKEN_CONTROL : TOKEN_USER_DEFINED);
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

static bool hf_unigram_write_keys(struct gguf_kvs *kvs, const struct vocab_input *input,
                                  const struct hf_vocabulary *vocabulary, struct error *error)
{
    const struct json *tokenizer = vocabulary->files->tokenizer;
    struct token_list list;
    uint64_t n_tokens = 0, unknown;
    json_u64(hparams_get(input->hparams, "vocab_size"), &n_tokens);
    n_tokens = n_tokens != 0 ? n_tokens : vocabulary->n_ids;
    if (!hf_count_fits(input, vocabulary, n_tokens, error) || !token_list_init(&list, n_tokens, -10000.f, error))
        return false;
    hf_unigram_set(&list, vocabulary);
    set_added(&list, vocabulary);
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
    .name = "Unigram", .file = "tokenizer.json", .fits = hf_unigram_fits, .write = hf_unigram_write_keys};

/* "t5": Pocket TTS's Unigram SentencePiece model, with tokens for vectors that its embedding has after the pieces.
 * conversion/pockettts.py. */

/* Names the last rows of the embedding. */
static void name_vectors(struct token_list *list, const struct checkpoint *checkpoint)
{
    static const char *const names[] = {"<|pad|>", "<|bos_before_voice|>", "<|audio_bos|>"};
    bool has_voice = tensor_set_find_text(checkpoint->tensors, "flow_lm.bos_before_voice") != NULL;
    uint64_t id = list->n_tokens - (has_voice ? 3 : 2);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (i != 1 || has_voice)
            token_list_set(list, id++, names[i], strlen(names[i]), -1000, TOKEN_CONTROL);
}

static bool pocket_write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const sentencepiece_model *model,
                              struct error *error)
{
    struct tokenizer_files files;
    struct token_list list;
    if (model->trainer == NULL || model->trainer->model_type != SENTENCEPIECE_UNIGRAM)
        return error_set(error, "tokenizer.model: not a Unigram model");
    if (!tokenizer_files_load(input->checkpoint, &files, error))
        return false;
    bool listed = sentencepiece_list(input, model, sentencepiece_vocab_size(input, model), &list, error);
    if (listed) {
        sentencepiece_add_file(&list, files.added_tokens);
        sentencepiece_add_decoder(&list, files.config, true);
        if (list.n_tokens >= 3)
            name_vectors(&list, input->checkpoint);
        token_list_write(&list, "t5", "default", true, kvs);
        token_list_free(&list);
        gguf_set_bool(kvs, "tokenizer.ggml.add_space_prefix", unigram_adds_prefix(model));
        gguf_set_bool(kvs, "tokenizer.ggml.remove_extra_whitespaces", unigram_removes_spaces(model));
        if (model->normalizer != NULL && model->normalizer->precompiled_charsmap.len > 0)
            unigram_write_normalizer(kvs, model);
        gguf_set_bool(kvs, "tokenizer.ggml.add_bos_token", false);
        gguf_set_bool(kvs, "tokenizer.ggml.add_eos_token", false);
    }
    tokenizer_files_free(&files);
    return listed;
}

/* Writes the keys of the model in a side file. */
static enum vocab_result add_model(struct gguf_kvs *kvs, const struct vocab_input *input, const char *name,
                                   bool (*write)(struct gguf_kvs *kvs, const struct vocab_input *input,
                                                 const sentencepiece_model *model, struct error *error),
                                   struct error *error)
{
    sentencepiece_model *model;
    enum vocab_result result = sentencepiece_load(input->checkpoint, name, &model, error);
    if (result != VOCAB_ADDED)
        return result;
    if (!write(kvs, input, model, error))
        result = VOCAB_FAILED;
    sentencepiece_free(model);
    return result;
}

static enum vocab_result pocket_add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    return add_model(kvs, input, "tokenizer.model", pocket_write_keys, error);
}

const struct vocab pocket_vocab = {.name = "Pocket TTS's SentencePiece", .file = "tokenizer.model", .add = pocket_add};

/* "t5" for XLM-RoBERTa: a SentencePiece Unigram model with ids moved to make room for four control tokens, or a
 * tokenizer.json of that kind. */

static uint64_t larger_vocab_size(const struct vocab_input *input, uint64_t n_tokens)
{
    uint64_t wanted = 0;
    json_u64(hparams_get(input->hparams, "vocab_size"), &wanted);
    return wanted > n_tokens ? wanted : n_tokens;
}

static void write_type_count(struct gguf_kvs *kvs, const struct vocab_input *input)
{
    uint64_t n_types = 1;
    json_u64(hparams_get(input->hparams, "type_vocab_size"), &n_types);
    gguf_set_u32(kvs, "tokenizer.ggml.token_type_count", (uint32_t)n_types);
}

static void write_list(struct gguf_kvs *kvs, const struct vocab_input *input, const struct token_list *list,
                       bool add_prefix, bool remove_spaces)
{
    token_list_write(list, "t5", "default", true, kvs);
    gguf_set_bool(kvs, "tokenizer.ggml.add_space_prefix", add_prefix);
    write_type_count(kvs, input);
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

/* Reports whether runs of spaces count as one. The converter asks clean_up_tokenization_spaces of
 * tokenizer_config.json, which is about decoding and which transformers 5 does not save. */
static bool removes_spaces(const struct vocab_input *input, const struct tokenizer_files *files)
{
    if (json_bool(json_get(files->config, "clean_up_tokenization_spaces"), false))
        return true;
    if (!hf_unigram_removes_spaces(files->tokenizer))
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
    uint64_t n_tokens = larger_vocab_size(input, vocabulary->n_model_tokens);
    if (hf_is_too_new(files)) {
        write_type_count(kvs, input);
        return hf_unigram_write_keys(kvs, input, vocabulary, error);
    }
    if (!hf_count_fits(input, vocabulary, n_tokens, error) || !token_list_init(&list, n_tokens, -10000.f, error))
        return false;
    hf_unigram_set(&list, vocabulary);
    write_list(kvs, input, &list, json_bool(json_get(files->config, "add_prefix_space"), false),
               removes_spaces(input, files));
    hf_unigram_write_normalizer(kvs, files->tokenizer);
    struct special_vocab_options options = {.n_vocab = list.n_tokens};
    token_list_free(&list);
    return special_vocab_write(kvs, input, files, &options, error);
}

static enum vocab_result xlmr_add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    enum vocab_result result = add_model(kvs, input, "sentencepiece.bpe.model", write_model, error);
    return result == VOCAB_ABSENT ? hf_vocabulary_add(kvs, input, hf_unigram_fits, write_json, error) : result;
}

const struct vocab xlmr_vocab = {.name = "XLM-RoBERTa's Unigram", .file = "tokenizer.json", .add = xlmr_add};
