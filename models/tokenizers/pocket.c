/* "t5": Pocket TTS's Unigram SentencePiece model, with tokens for vectors that its embedding has after the pieces.
 * conversion/pockettts.py. */
#include "models/tokenizers/sentencepiece.h"
#include "models/tokenizers/unigram.h"

#include <string.h>

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

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const sentencepiece_model *model,
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

static enum vocab_result add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    sentencepiece_model *model;
    enum vocab_result result = sentencepiece_load(input->checkpoint, "tokenizer.model", &model, error);
    if (result != VOCAB_ADDED)
        return result;
    if (!write_keys(kvs, input, model, error))
        result = VOCAB_FAILED;
    sentencepiece_free(model);
    return result;
}

const struct vocab pocket_vocab = {.name = "Pocket TTS's SentencePiece", .file = "tokenizer.model", .add = add};
