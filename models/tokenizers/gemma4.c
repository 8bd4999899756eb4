/* "gemma4": BPE with byte fallback and its merges. conversion/gemma.py. */
#include "models/tokenizers/hf_kind.h"

#include <string.h>

/* Reports whether a token is shown whatever the files say: readers of a model's answers look for these tokens. */
static bool is_shown(const struct token *token)
{
    static const char *const shown[] = {"<|channel>",       "<channel|>",       "<|tool_call>", "<tool_call|>",
                                        "<|tool_response>", "<tool_response|>", "<|\"|>"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (token->text != NULL && token->length == strlen(shown[i]) &&
            memcmp(token->text, shown[i], token->length) == 0)
            return true;
    return false;
}

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    struct token_list list;
    if (!llama_hf_list(input, vocabulary, &list, error))
        return false;
    for (uint64_t i = 0; i < list.n_tokens; i++)
        if (is_shown(&list.tokens[i]))
            list.tokens[i].type = TOKEN_USER_DEFINED;
    token_list_write(&list, "gemma4", NULL, true, kvs);
    token_list_free(&list);
    if (!special_vocab_write(kvs, input, vocabulary->files, &(struct special_vocab_options){.load_merges = true},
                             error))
        return false;
    gguf_set_bool(kvs, "tokenizer.ggml.add_space_prefix", false);
    gguf_set_bool(kvs, "tokenizer.ggml.add_bos_token", true);
    return true;
}

const struct vocab gemma4_vocab = {
    .name = "Gemma 4's BPE with byte fallback", .file = "tokenizer.json", .fits = llama_hf_fits, .write = write_keys};
