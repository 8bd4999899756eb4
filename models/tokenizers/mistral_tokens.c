#include "models/tokenizers/mistral_tokens.h"

#include "formats/documents.h"

#include <stdio.h>
#include <stdlib.h>

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
