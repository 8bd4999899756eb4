#include "base/arena.h"
#include "models/meta/meta.h"
#include "models/tokenizers/rebuild.h"

static struct token spelled(struct arena *arena, const struct buffer *text, enum token_type type)
{
    const char *kept = arena_strndup(arena, (const char *)text->bytes, text->length);
    return (struct token){.text = kept, .length = text->length, .type = type};
}

/* Returns the vocabulary that a GGUF of the model has. */
static struct stored_vocab make_vocab(const struct tiktoken *tiktoken, bool llama31, struct arena *arena,
                                      const struct gguf_kvs *kvs)
{
    uint32_t n_ranks = (uint32_t)tiktoken_count(tiktoken);
    struct stored_vocab vocab = {.arena = arena, .kvs = kvs, .n_tokens = (uint64_t)n_ranks + META_SPECIAL_TOKENS};
    struct buffer text = {0};
    vocab.tokens = arena_array(arena, vocab.n_tokens, sizeof *vocab.tokens);
    for (uint32_t rank = 0; rank < n_ranks; rank++) {
        text.length = 0;
        tiktoken_append(tiktoken, rank, &text);
        vocab.tokens[rank] = spelled(arena, &text, TOKEN_NORMAL);
    }
    for (unsigned i = 0; i < META_SPECIAL_TOKENS; i++) {
        char name[64];
        text.length = 0;
        buffer_append_text(&text, meta_special_token(llama31, i, name));
        vocab.tokens[n_ranks + i] = spelled(arena, &text, TOKEN_CONTROL);
    }
    buffer_free(&text);
    for (size_t i = 0; i < SPECIALS; i++)
        vocab.ids[i] = NO_TOKEN;
    vocab.ids[SPECIAL_BOS] = n_ranks;
    return vocab;
}

static void put_merges(const struct tiktoken *tiktoken, const struct stored_vocab *vocab, struct json_writer *writer)
{
    struct tiktoken_merge merges[TIKTOKEN_MAX_BYTES];
    struct buffer text = {0};
    json_begin_array(writer, "merges");
    for (uint32_t rank = 0; rank < tiktoken_count(tiktoken); rank++) {
        size_t n_merges = tiktoken_merges(tiktoken, rank, merges);
        for (size_t i = 0; i < n_merges; i++) {
            const struct token *left = &vocab->tokens[merges[i].left], *right = &vocab->tokens[merges[i].right];
            text.length = 0;
            buffer_append(&text, left->text, left->length);
            buffer_append_text(&text, " ");
            buffer_append(&text, right->text, right->length);
            json_put_text_n(writer, NULL, (const char *)text.bytes, text.length);
        }
    }
    json_end(writer);
    buffer_free(&text);
}

void meta_write_tokenizer(const struct tiktoken *tiktoken, bool llama31, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_UTF8};
    struct arena *arena = arena_new();
    struct gguf_kvs kvs = {0};
    bool known;
    gguf_set_bool(&kvs, "tokenizer.ggml.add_sep_token", false);
    const struct stored_vocab vocab = make_vocab(tiktoken, llama31, arena, &kvs);
    const struct pre_row *row = pre_row_find("llama-bpe", &known);
    rebuild_begin(&vocab, &writer);
    rebuild_bpe_steps(&vocab, row, &writer);
    rebuild_bpe_begin_model(row, &writer);
    json_put_template(&writer, "'vocab': {");
    for (uint64_t i = 0; i < tiktoken_count(tiktoken); i++)
        rebuild_put_token(&vocab, i, &writer);
    json_end(&writer);
    put_merges(tiktoken, &vocab, &writer);
    json_put_template(&writer, "}}");
    gguf_kvs_free(&kvs);
    arena_free(arena);
}
