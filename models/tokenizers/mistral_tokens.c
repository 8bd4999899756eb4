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
        {"tokenizer.ggml.bos_token_id", "begins a text", ids->begin},
        {"tokenizer.ggml.eos_token_id", "ends a text", ids->end},
        {"tokenizer.ggml.unknown_token_id", "stands for what is unknown", ids->unknown},
        {"tokenizer.ggml.padding_token_id", "fills up", ids->padding != MISTRAL_NO_ID ? ids->padding : ids->end},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].id == MISTRAL_NO_ID)
            return error_set(error, "%s: there is no token that %s", file, rows[i].what);
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
    snprintf(key, sizeof key, "%s.vocab_size", input->family);
    gguf_set_u32(kvs, key, (uint32_t)n_tokens);
    gguf_set_bool(kvs, "tokenizer.ggml.add_bos_token", true);
    gguf_set_bool(kvs, "tokenizer.ggml.add_eos_token", false);
    if (text != NULL)
        gguf_set_string(kvs, "tokenizer.chat_template", text, length);
    else if (name != NULL)
        gguf_set_text(kvs, "tokenizer.chat_template", name);
    else
        checkpoint_note(input->checkpoint,
                        "model.gguf: there is no chat_template.jinja, and the one that the converter has for "
                        "tokenizers of version %.16s is not known here: it has no chat template",
                        version);
    free(text);
    return true;
}
