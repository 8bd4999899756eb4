/* "t5" for XLM-RoBERTa: a SentencePiece Unigram model with ids moved to make room for four control tokens, or a
 * tokenizer.json of that kind. */
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

static enum vocab_result add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    sentencepiece_model *model;
    enum vocab_result result = sentencepiece_load(input->checkpoint, "sentencepiece.bpe.model", &model, error);
    if (result == VOCAB_ABSENT)
        return hf_vocabulary_add(kvs, input, hf_unigram_fits, write_json, error);
    if (result != VOCAB_ADDED)
        return result;
    if (!write_model(kvs, input, model, error))
        result = VOCAB_FAILED;
    sentencepiece_free(model);
    return result;
}

const struct vocab xlmr_vocab = {.name = "XLM-RoBERTa's Unigram", .file = "tokenizer.json", .add = add};
