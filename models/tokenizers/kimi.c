/* "gpt2" from tiktoken.model: the tokenizer of Kimi K2 and its kin. Merges are not stored: they follow from the ranks.
 * Special tokens come after the ranks: those that tokenizer_config.json names, and reserved ones.
 * conversion/deepseek.py; the tokenization_kimi.py of these repositories. */
#include "formats/documents.h"
#include "models/meta/meta.h"
#include "models/tokenizers/token_list.h"
#include "models/tokenizers/tokenizer_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESERVED_TOKENS = 258 };

static const char file_name[] = "tiktoken.model";

/* The text of a token or of a merge, in the list's arena. */
static const char *spelled(struct arena *arena, const struct tiktoken *tiktoken, uint32_t left, int64_t right,
                           size_t *ret_length)
{
    struct buffer text = {0};
    tiktoken_append(tiktoken, left, &text);
    if (right >= 0) {
        buffer_append_text(&text, " ");
        tiktoken_append(tiktoken, (uint32_t)right, &text);
    }
    const char *copy = arena_strndup(arena, (const char *)text.bytes, text.length);
    *ret_length = text.length;
    buffer_free(&text);
    return copy;
}

static void set_special_tokens(struct token_list *list, uint64_t first, const struct json *decoder)
{
    for (uint64_t id = first; id < first + RESERVED_TOKENS; id++) {
        char *text = arena_printf(list->arena, "<|reserved_token_%llu|>", (unsigned long long)id);
        token_list_set(list, id, text, strlen(text), 0, TOKEN_CONTROL);
    }
    for (const struct json *token = json_first(decoder); token != NULL; token = json_next(token)) {
        size_t length;
        const char *text = json_string(json_get(token, "content"), &length);
        uint64_t id = strtoull(json_key(token, NULL), NULL, 10);
        if (text != NULL && id >= first && id < first + RESERVED_TOKENS)
            token_list_set(list, id, text, length, 0, TOKEN_CONTROL);
    }
}

static void add_merges(struct gguf_kvs *kvs, const struct tiktoken *tiktoken, struct arena *arena)
{
    struct buffer merges = {0};
    uint64_t n_merges = 0;
    for (uint32_t rank = 0; rank < tiktoken_count(tiktoken); rank++) {
        uint32_t left, right;
        size_t length;
        if (!tiktoken_split(tiktoken, rank, &left, &right))
            continue;
        const char *text = spelled(arena, tiktoken, left, right, &length);
        gguf_append_string(&merges, text, length);
        n_merges++;
    }
    gguf_set_array(kvs, "tokenizer.ggml.merges", GGUF_STRING, n_merges, &merges);
}

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct tiktoken *tiktoken,
                       const struct tokenizer_files *files, struct error *error)
{
    struct token_list list;
    uint64_t n_tokens;
    if (!hparams_count(input->hparams, "vocab_size", 1, TOKEN_LIST_MAX, &n_tokens, error) ||
        !token_count_fits(input, n_tokens, tiktoken_count(tiktoken) + RESERVED_TOKENS, error) ||
        !token_list_init(&list, n_tokens, 0, error))
        return false;
    for (uint32_t rank = 0; rank < tiktoken_count(tiktoken); rank++) {
        size_t length;
        const char *text = spelled(list.arena, tiktoken, rank, -1, &length);
        token_list_set(&list, rank, text, length, 0, TOKEN_NORMAL);
    }
    set_special_tokens(&list, tiktoken_count(tiktoken), json_get(files->config, "added_tokens_decoder"));
    gguf_set_text(kvs, "tokenizer.ggml.model", "gpt2");
    gguf_set_text(kvs, "tokenizer.ggml.pre", "kimi-k2");
    token_list_write(&list, false, kvs);
    add_merges(kvs, tiktoken, list.arena);
    token_list_free(&list);
    return special_vocab_write(kvs, input, files, &(struct special_vocab_options){0}, error);
}

static enum vocab_result add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    struct tokenizer_files files;
    size_t length;
    bool absent, damaged = false;
    char *text = document_text(input->checkpoint, file_name, &length, &absent, error);
    if (text == NULL)
        return absent ? VOCAB_ABSENT : VOCAB_FAILED;
    struct tiktoken *tiktoken = tiktoken_parse(text, length, &damaged, error);
    free(text);
    if (tiktoken == NULL) {
        if (damaged)
            error_prefix(error, "%s", file_name);
        else
            error_set(error, "%s: its lines are not tokens in base64 and their ranks", file_name);
        return VOCAB_FAILED;
    }
    bool written = tokenizer_files_load(input->checkpoint, &files, error);
    if (written) {
        written = write_keys(kvs, input, tiktoken, &files, error);
        tokenizer_files_free(&files);
    }
    tiktoken_free(tiktoken);
    return written ? VOCAB_ADDED : VOCAB_FAILED;
}

const struct vocab kimi_vocab = {.name = "Kimi's ranked tokens", .file = "tiktoken.model", .add = add};
