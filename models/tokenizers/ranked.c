#include "models/tokenizers/ranked.h"

#include "base/text_index.h"
#include "formats/documents.h"

#include <stdlib.h>
#include <string.h>

/* Returns the text of a token, in the arena. */
static const char *spelled(struct arena *arena, const struct tiktoken *tiktoken, uint32_t rank, size_t *ret_length)
{
    struct buffer text = {0};
    tiktoken_append(tiktoken, rank, &text);
    const char *copy = arena_strndup(arena, (const char *)text.bytes, text.length);
    *ret_length = text.length;
    buffer_free(&text);
    return copy;
}

static void add_merges(struct gguf_kvs *kvs, const struct tiktoken *tiktoken)
{
    struct buffer merges = {0}, text = {0};
    uint64_t n_merges = 0;
    for (uint32_t rank = 0; rank < tiktoken_count(tiktoken); rank++) {
        text.length = 0;
        if (!tiktoken_append_merge(tiktoken, rank, &text))
            continue;
        gguf_append_string(&merges, (const char *)text.bytes, text.length);
        n_merges++;
    }
    buffer_free(&text);
    gguf_set_array(kvs, "tokenizer.ggml.merges", GGUF_STRING, n_merges, &merges);
}

/* Gives each text one id, the highest that has it: a special token's, or the rank's. */
static void drop_doubles(struct token_list *list)
{
    struct text_index texts = {0};
    for (uint64_t id = list->n_tokens; id-- > 0;) {
        struct token *token = &list->tokens[id];
        if (token->text != NULL && !text_index_add(&texts, token->text, token->length, id))
            *token = (struct token){.type = TOKEN_UNUSED};
    }
    text_index_free(&texts);
}

static void set_named_specials(struct token_list *list, uint64_t first, uint64_t count, const char *const *names)
{
    uint64_t n_extra = 0;
    for (uint64_t i = 0; i < count; i++) {
        const char *text =
            *names != NULL ? *names++ : arena_printf(list->arena, "<|extra_%llu|>", (unsigned long long)n_extra++);
        token_list_set(list, first + i, text, strlen(text), 0, TOKEN_CONTROL);
    }
}

static bool make_list(struct token_list *list, const struct vocab_input *input, const struct ranked_kind *kind,
                      const struct tiktoken *tiktoken, const struct tokenizer_files *files, struct error *error)
{
    uint64_t n_tokens, n_ranks = tiktoken_count(tiktoken);
    if (!hparams_count(input->hparams, "vocab_size", 1, TOKEN_LIST_MAX, &n_tokens, error))
        return false;
    uint64_t n_specials = n_tokens > n_ranks ? n_tokens - n_ranks : 0;
    if (kind->n_specials != 0)
        n_specials = kind->n_specials;
    uint64_t n_given = n_ranks + n_specials;
    if (!token_count_fits(input, n_tokens, n_given, error) ||
        !token_list_init(list, n_tokens > n_given ? n_tokens : n_given, 0, error))
        return false;
    for (uint32_t rank = 0; rank < n_ranks; rank++) {
        size_t length;
        const char *text = spelled(list->arena, tiktoken, rank, &length);
        token_list_set(list, rank, text, length, 0, TOKEN_NORMAL);
    }
    if (kind->set_specials != NULL)
        kind->set_specials(list, n_ranks, n_specials, files);
    else
        set_named_specials(list, n_ranks, n_specials, kind->specials);
    drop_doubles(list);
    list->n_tokens = n_tokens; /* further tokens served only to find repeated texts */
    return true;
}

/* Sets the id of the special token that ends a text. */
static bool set_end(struct gguf_kvs *kvs, const struct token_list *list, uint64_t first, const struct json *config,
                    const char *otherwise, struct error *error)
{
    const struct json *given = json_get(config, "eos_token");
    size_t length = strlen(otherwise);
    const char *text = given != NULL ? token_content(given, &length) : otherwise;
    for (uint64_t id = first; text != NULL && id < list->n_tokens; id++) {
        const struct token *token = &list->tokens[id];
        if (token->text == NULL || token->length != length || memcmp(token->text, text, length) != 0)
            continue;
        gguf_set_u32(kvs, "tokenizer.ggml.eos_token_id", (uint32_t)id);
        return true;
    }
    return error_set(error, "tokenizer_config.json: eos_token is not one of the special tokens");
}

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct ranked_kind *kind,
                       const struct tiktoken *tiktoken, const struct tokenizer_files *files, struct error *error)
{
    struct token_list list;
    struct special_id ids[SPECIAL_IDS];
    struct special_vocab_options options = {.ids = ids};
    if (!make_list(&list, input, kind, tiktoken, files, error))
        return false;
    if (kind->list_ids != NULL)
        options.n_ids = kind->list_ids(input, files, tiktoken_count(tiktoken), ids);
    token_list_write(&list, "gpt2", kind->pre, false, kvs);
    add_merges(kvs, tiktoken);
    bool written =
        special_vocab_write(kvs, input, files, &options, error) &&
        (kind->end == NULL || set_end(kvs, &list, tiktoken_count(tiktoken), files->config, kind->end, error));
    token_list_free(&list);
    return written;
}

enum vocab_result ranked_add(struct gguf_kvs *kvs, const struct vocab_input *input, const struct ranked_kind *kind,
                             struct error *error)
{
    struct tokenizer_files files;
    size_t length;
    bool absent, damaged = false;
    char *text = document_text(input->checkpoint, kind->file, &length, &absent, error);
    if (text == NULL)
        return absent ? VOCAB_ABSENT : VOCAB_FAILED;
    struct tiktoken *tiktoken = tiktoken_parse(text, length, kind->ranks, &damaged, error);
    free(text);
    if (tiktoken == NULL) {
        if (damaged)
            error_prefix(error, "%s", kind->file);
        else
            error_set(error, "%s: not lines of base64 tokens and ranks", kind->file);
        return VOCAB_FAILED;
    }
    bool written = tokenizer_files_load(input->checkpoint, &files, error);
    if (written) {
        written = write_keys(kvs, input, kind, tiktoken, &files, error);
        tokenizer_files_free(&files);
    }
    tiktoken_free(tiktoken);
    return written ? VOCAB_ADDED : VOCAB_FAILED;
}
