/* Laguna's byte-level BPE: the end of the assistant's turn is a control token, although the files do not say so.
 * conversion/laguna.py. */
#include "models/tokenizers/hf_kind.h"

#include <string.h>

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
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

const struct vocab laguna_vocab = {.name = "byte-level BPE of Laguna", .file = "tokenizer.json", .write = write_keys};
