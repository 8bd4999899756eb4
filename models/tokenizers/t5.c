/* "t5": T5's Unigram SentencePiece model. */
#include "models/tokenizers/sentencepiece.h"
#include "models/tokenizers/unigram.h"

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

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const sentencepiece_model *model,
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

static enum vocab_result add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    sentencepiece_model *model;
    enum vocab_result result = sentencepiece_load(input->checkpoint, "tokenizer.model", &model, error);
    if (result == VOCAB_ABSENT)
        result = sentencepiece_load(input->checkpoint, "spiece.model", &model, error);
    if (result != VOCAB_ADDED)
        return result;
    if (model->trainer != NULL && model->trainer->model_type == SENTENCEPIECE_BPE)
        result = VOCAB_ABSENT; /* an ordinary SentencePiece vocabulary */
    else if (!write_keys(kvs, input, model, error))
        result = VOCAB_FAILED;
    sentencepiece_free(model);
    return result;
}

const struct vocab t5_vocab = {.name = "SentencePiece Unigram", .file = "spiece.model", .add = add};
