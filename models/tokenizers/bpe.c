/* "gpt2": byte-level byte pair encoding, from tokenizer.json, or from vocab.json and merges.txt. */
#include "models/tokenizers/hf_kind.h"
#include "models/tokenizers/hf_vocabulary.h"

#include <string.h>

static bool has_only_spaces(const struct token *token)
{
    size_t n_spaces = 0;
    while (n_spaces < token->length && token->text[n_spaces] == ' ')
        n_spaces++;
    return n_spaces == token->length;
}

/* Makes added tokens of spaces normal ones: mmBERT's tokenizer never matches them. */
static void make_spaces_normal(struct token_list *list)
{
    static const char space[] = "\xe2\x96\x81";
    for (struct token *token = list->tokens; token < list->tokens + list->n_tokens; token++) {
        if (token->type != TOKEN_USER_DEFINED || token->length == 0 || !has_only_spaces(token))
            continue;
        char *text = arena_array(list->arena, token->length, sizeof space - 1);
        for (size_t i = 0; i < token->length; i++)
            memcpy(&text[i * (sizeof space - 1)], space, sizeof space - 1);
        *token = (struct token){text, token->length * (sizeof space - 1), token->score, TOKEN_NORMAL};
    }
}

static bool is_mmbert(const struct gguf_kvs *kvs, const struct vocab_input *input)
{
    struct arena *arena = arena_new();
    const char *pre = gguf_get_text(kvs, "tokenizer.ggml.pre", arena);
    bool is = strcmp(input->architecture, "modern-bert") == 0 && pre != NULL && strcmp(pre, "mmbert") == 0;
    arena_free(arena);
    return is;
}

bool bpe_write(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
               const struct special_id *ids, size_t n_ids, struct error *error)
{
    struct token_list list;
    uint64_t n_tokens = vocabulary->n_ids;
    json_u64(hparams_get(input->hparams, "vocab_size"), &n_tokens);
    if (!hf_count_fits(input, vocabulary, n_tokens, error) || !hf_token_list(vocabulary, n_tokens, &list, error))
        return false;
    gguf_set_text(kvs, "tokenizer.ggml.model", "gpt2");
    bool named = pre_write(kvs, input, vocabulary, error);
    if (named && is_mmbert(kvs, input))
        make_spaces_normal(&list);
    token_list_write(&list, NULL, NULL, false, kvs);
    token_list_free(&list);
    if (!named)
        return false;
    const struct special_vocab_options options = {.load_merges = true, .ids = ids, .n_ids = n_ids};
    return special_vocab_write(kvs, input, vocabulary->files, &options, error);
}

static bool write_keys(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    return bpe_write(kvs, input, vocabulary, NULL, 0, error);
}

bool bpe_fits(const struct json *tokenizer)
{
    enum hf_kind kind = hf_kind_of(tokenizer);
    return kind != HF_BYTE_FALLBACK && kind != HF_UNIGRAM;
}

const struct vocab bpe_vocab = {
    .name = "byte-level BPE", .file = "tokenizer.json", .fits = bpe_fits, .write = write_keys};

/* Byte-level BPE with the files' flags for added tokens: special or not, whatever their texts look like.
 * conversion/llada.py, dream.py. */

static bool write_plain_keys(struct gguf_kvs *kvs, const struct vocab_input *input,
                             const struct hf_vocabulary *vocabulary, struct error *error)
{
    struct hf_vocabulary plain = *vocabulary;
    plain.keeps_added = true;
    return bpe_write(kvs, input, &plain, NULL, 0, error);
}

const struct vocab plain_bpe_vocab = {
    .name = "plain byte-level BPE", .file = "tokenizer.json", .fits = bpe_fits, .write = write_plain_keys};

/* Laguna's byte-level BPE: the end of the assistant's turn is a control token, although the files do not say so.
 * conversion/laguna.py. */

static bool write_laguna_keys(struct gguf_kvs *kvs, const struct vocab_input *input,
                              const struct hf_vocabulary *vocabulary, struct error *error)
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

const struct vocab laguna_vocab = {
    .name = "byte-level BPE of Laguna", .file = "tokenizer.json", .write = write_laguna_keys};
