#include "models/tokenizers/mistral_tokens.h"

#include "base/text.h"
#include "formats/documents.h"
#include "models/tokenizers/sentencepiece.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool mistral_write_ids(struct gguf_kvs *kvs, const struct mistral_ids *ids, const char *file, struct error *error)
{
    const struct {
        const char *key, *what;
        uint64_t id;
    } rows[] = {
        {"tokenizer.ggml.bos_token_id", "BOS", ids->begin},
        {"tokenizer.ggml.eos_token_id", "EOS", ids->end},
        {"tokenizer.ggml.unknown_token_id", "unknown", ids->unknown},
        {"tokenizer.ggml.padding_token_id", "padding", ids->padding != MISTRAL_NO_ID ? ids->padding : ids->end},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].id == MISTRAL_NO_ID)
            return error_set(error, "%s has no %s token", file, rows[i].what);
        gguf_set_u32(kvs, rows[i].key, (uint32_t)rows[i].id);
    }
    return true;
}

bool mistral_write_end(struct gguf_kvs *kvs, const struct vocab_input *input, uint64_t n_tokens, const char *name,
                       const char *version, struct error *error)
{
    char key[128];
    size_t length;
    bool absent;
    char *text = document_text(input->checkpoint, "chat_template.jinja", &length, &absent, error);
    if (text == NULL && !absent)
        return false;
    snprintf(key, sizeof key, "%s.vocab_size", input->architecture);
    gguf_set_u32(kvs, key, (uint32_t)n_tokens);
    gguf_set_bool(kvs, "tokenizer.ggml.add_bos_token", true);
    gguf_set_bool(kvs, "tokenizer.ggml.add_eos_token", false);
    if (text != NULL)
        gguf_set_string(kvs, "tokenizer.chat_template", text, length);
    else if (name != NULL)
        gguf_set_text(kvs, "tokenizer.chat_template", name);
    else
        checkpoint_note(
            input->checkpoint, SUBJECT_GGUF,
            "no chat template: chat_template.jinja is missing, and wfs does not have the converter's template for "
            "tokenizers of version %.16s; -o chat-template=FILE adds a template",
            version);
    free(text);
    return true;
}

/* "llama" from the SentencePiece model of Mistral's own format: tokenizer.model, tokenizer.model.v3,
 * tokenizer.model.v7m1 ... gguf-py vocab.py, MistralVocab; mistral_common's utils.py.
 *
 * Of several files the last by name counts. Its ending is the tokenizer's version, by which llama.cpp knows the chat
 * template. The model's own pieces are all tokens. */

enum { VERSION_DIGITS = 2 };

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* Reads a name's ending, ".model" or ".model.v7m1"; *ret_version is "v7", or "v1". Returns false for other names. */
static bool read_name(const char *name, char ret_version[VERSION_DIGITS + 2])
{
    static const char ending[] = ".model";
    const char *at = strchr(name, '.');
    if (at == NULL || strchr(name, '/') != NULL || !text_starts_with(at, ending))
        return false;
    at += strlen(ending);
    memcpy(ret_version, "v1", sizeof "v1");
    if (*at == '\0')
        return true;
    size_t n_digits = at[0] == '.' && at[1] == 'v' ? count_digits(at + 2) : 0;
    if (n_digits == 0 || n_digits > VERSION_DIGITS)
        return false;
    memcpy(ret_version, at + 1, 1 + n_digits);
    ret_version[1 + n_digits] = '\0';
    at += 2 + n_digits;
    return *at == '\0' || (*at == 'm' && count_digits(at + 1) > 0 && at[1 + count_digits(at + 1)] == '\0');
}

static const char *find_name(const struct checkpoint *checkpoint, char ret_version[VERSION_DIGITS + 2])
{
    const char *found = NULL;
    char version[VERSION_DIGITS + 2];
    for (size_t i = 0; i < checkpoint->n_side_files; i++)
        if (read_name(checkpoint->side_files[i].name, version)) {
            found = checkpoint->side_files[i].name;
            memcpy(ret_version, version, sizeof version);
        }
    return found;
}

static bool write_ids(struct gguf_kvs *kvs, const sentencepiece_model *model, const char *name, struct error *error)
{
    const struct mistral_ids ids = {
        .begin = sentencepiece_id(model, SENTENCEPIECE_BEGIN),
        .end = sentencepiece_id(model, SENTENCEPIECE_END),
        .unknown = sentencepiece_id(model, SENTENCEPIECE_UNKNOWN),
        .padding = sentencepiece_id(model, SENTENCEPIECE_PADDING),
    };
    return mistral_write_ids(kvs, &ids, name, error);
}

static const char *template_name(const char *version)
{
    static const char *const known[][2] = {{"v1", "mistral-v1"}, {"v3", "mistral-v3"}, {"v7", "mistral-v7"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i][0], version) == 0)
            return known[i][1];
    return NULL;
}

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const sentencepiece_model *model,
                       const char *name, const char *version, struct error *error)
{
    struct token_list list;
    if (!sentencepiece_list(input, model, model->n_pieces, &list, error))
        return false;
    gguf_set_text(kvs, "tokenizer.ggml.model", "llama");
    bool written = write_ids(kvs, model, name, error);
    if (written) {
        token_list_write(&list, NULL, NULL, true, kvs);
        written = mistral_write_end(kvs, input, list.n_tokens, template_name(version), version, error);
    }
    token_list_free(&list);
    return written;
}

static enum vocab_result add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    sentencepiece_model *model;
    char version[VERSION_DIGITS + 2];
    const char *name = find_name(input->checkpoint, version);
    if (name == NULL)
        return VOCAB_ABSENT;
    enum vocab_result result = sentencepiece_load(input->checkpoint, name, &model, error);
    if (result != VOCAB_ADDED)
        return result;
    if (!write_keys(kvs, input, model, name, version, error))
        result = VOCAB_FAILED;
    sentencepiece_free(model);
    return result;
}

const struct vocab mistral_spm_vocab = {.name = "Mistral's SentencePiece", .file = "tokenizer.model.vN", .add = add};
