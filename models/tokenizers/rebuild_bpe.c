/* tokenizer.json of byte-level BPE. */
#include "base/text.h"
#include "base/text_index.h"
#include "models/tokenizers/rebuild.h"

#include <inttypes.h>
#include <string.h>

/* Added tokens, found before texts are split. They are not in the model's vocabulary unless it has them itself. */
struct outer_tokens {
    struct text_index index;
    bool *wanted; /* by id: a merge makes or takes the token, so the model needs it too */
    uint64_t first;
};

static bool is_inner(const struct stored_vocab *vocab, const struct outer_tokens *outer, uint64_t id)
{
    return id < outer->first || !token_is_added(&vocab->tokens[id]) || outer->wanted[id];
}

static void find_outer(const struct stored_vocab *vocab, struct outer_tokens *outer)
{
    *outer = (struct outer_tokens){.first = vocab->n_tokens};
    outer->wanted = arena_alloc(vocab->arena, vocab->n_tokens + 1);
    while (outer->first > 0 && token_is_added(&vocab->tokens[outer->first - 1]))
        outer->first--;
    for (uint64_t i = outer->first; i < vocab->n_tokens; i++)
        text_index_add(&outer->index, vocab->tokens[i].text, vocab->tokens[i].length, i);
}

static void want(struct outer_tokens *outer, const char *text, size_t length)
{
    size_t id;
    if (text_index_find(&outer->index, text, length, &id))
        outer->wanted[id] = true;
}

struct parted {
    const char *left, *right;
    size_t left_length, right_length;
};

static bool part_merge(const struct gguf_array *merges, uint64_t index, struct parted *ret_parted, struct error *error)
{
    size_t length;
    const char *text = gguf_array_string(merges, index, &length);
    const char *space = text != NULL && length > 1 ? memchr(text + 1, ' ', length - 1) : NULL;
    if (space == NULL || space + 1 == text + length)
        return error_set(error, "tokenizer.ggml.merges: number %" PRIu64 " is not two tokens", index);
    *ret_parted = (struct parted){text, space + 1, (size_t)(space - text), length - (size_t)(space + 1 - text)};
    return true;
}

static bool want_merged(const struct stored_vocab *vocab, const struct gguf_array *merges, struct outer_tokens *outer,
                        struct error *error)
{
    struct buffer made = {0};
    bool good = true;
    for (uint64_t i = 0; good && i < merges->count; i++) {
        struct parted parted = {0};
        good = part_merge(merges, i, &parted, error);
        if (!good || outer->first == vocab->n_tokens)
            continue;
        made.length = 0;
        buffer_append(&made, parted.left, parted.left_length);
        buffer_append(&made, parted.right, parted.right_length);
        want(outer, parted.left, parted.left_length);
        want(outer, parted.right, parted.right_length);
        want(outer, (const char *)made.bytes, made.length);
    }
    buffer_free(&made);
    return good;
}

static bool write_array(const struct gguf_array *merges, struct json_writer *writer, struct error *error)
{
    json_begin_array(writer, "merges");
    for (uint64_t i = 0; i < merges->count; i++) {
        struct parted parted = {0};
        if (!part_merge(merges, i, &parted, error))
            return false;
        json_put_template(writer, "[%t, %t]", parted.left, parted.left_length, parted.right, parted.right_length);
    }
    json_end(writer);
    return true;
}

/* Gets the merges; none if the key is missing. */
static bool get_merges(const struct stored_vocab *vocab, struct gguf_array *ret_merges, struct error *error)
{
    *ret_merges = (struct gguf_array){.type = GGUF_STRING};
    return gguf_kvs_find(vocab->kvs, "tokenizer.ggml.merges") == NULL ||
           gguf_get_array(vocab->kvs, "tokenizer.ggml.merges", vocab->arena, ret_merges, error);
}

bool rebuild_merges(const struct stored_vocab *vocab, struct json_writer *writer, struct error *error)
{
    struct gguf_array merges;
    return get_merges(vocab, &merges, error) && write_array(&merges, writer, error);
}

static bool is_one_character(const struct token *token)
{
    return token->length > 0 && text_character(token->text, token->length) == token->length;
}

/* Finds the tokens that merges make by joining two. */
static bool find_made(const struct text_index *ids, const struct gguf_array *merges, bool *made, struct error *error)
{
    struct buffer text = {0};
    bool good = true;
    for (uint64_t i = 0; good && i < merges->count; i++) {
        struct parted parted = {0};
        size_t id;
        good = part_merge(merges, i, &parted, error);
        text.length = 0;
        buffer_append(&text, parted.left, good ? parted.left_length : 0);
        buffer_append(&text, parted.right, good ? parted.right_length : 0);
        if (good && text_index_find(ids, (const char *)text.bytes, text.length, &id))
            made[id] = true;
    }
    buffer_free(&text);
    return good;
}

bool rebuild_find_added(struct stored_vocab *vocab, struct error *error)
{
    struct gguf_array merges;
    struct text_index ids = {0};
    bool *made = arena_alloc(vocab->arena, vocab->n_tokens + 1);
    if (!get_merges(vocab, &merges, error))
        return false;
    for (uint64_t i = 0; i < vocab->n_tokens; i++)
        if (vocab->tokens[i].type == TOKEN_NORMAL)
            text_index_set(&ids, vocab->tokens[i].text, vocab->tokens[i].length, i);
    bool found = find_made(&ids, &merges, made, error);
    for (uint64_t i = 0; i < vocab->n_tokens; i++) {
        struct token *token = &vocab->tokens[i];
        if (token->type == TOKEN_NORMAL && !made[i] && !is_one_character(token))
            token->type = TOKEN_USER_DEFINED;
    }
    text_index_free(&ids);
    return found;
}

static void put_vocab(const struct stored_vocab *vocab, const struct outer_tokens *outer, struct json_writer *writer)
{
    for (uint64_t i = 0; i < vocab->n_tokens; i++)
        if (is_inner(vocab, outer, i))
            rebuild_put_token(vocab, i, writer);
}

void rebuild_bpe_begin_model(const struct pre_row *row, struct json_writer *writer)
{
    json_put_template(writer,
                      "'model': {'type': 'BPE', 'dropout': null, 'unk_token': null, 'continuing_subword_prefix': null,"
                      " 'end_of_word_suffix': null, 'fuse_unk': false, 'byte_fallback': false, 'ignore_merges': %b",
                      row->ignores_merges);
}

/* Writes the object of tokens that the merges refer to. */
static bool put_tokens(const struct stored_vocab *vocab, const struct gguf_array *merges, const char *key,
                       struct json_writer *writer, struct error *error)
{
    struct outer_tokens outer;
    find_outer(vocab, &outer);
    bool good = want_merged(vocab, merges, &outer, error);
    json_begin_object(writer, key);
    put_vocab(vocab, &outer, writer);
    json_end(writer);
    text_index_free(&outer.index);
    return good;
}

static bool write_model(const struct stored_vocab *vocab, const struct pre_row *row, struct json_writer *writer,
                        struct error *error)
{
    struct gguf_array merges;
    if (!get_merges(vocab, &merges, error))
        return false;
    rebuild_bpe_begin_model(row, writer);
    if (!put_tokens(vocab, &merges, "vocab", writer, error) || !write_array(&merges, writer, error))
        return false;
    json_end(writer);
    return true;
}

static void write_post_processor(const struct stored_vocab *vocab, const struct pre_row *row,
                                 struct json_writer *writer)
{
    struct template template;
    bool has_template = rebuild_usual_template(vocab, row->adds_bos, &template);
    json_put_template(writer,
                      has_template ? "'post_processor': {'type': 'Sequence', 'processors': [" : "'post_processor': ");
    json_put_template(writer,
                      "{'type': 'ByteLevel', 'add_prefix_space': true, 'trim_offsets': false, 'use_regex': true}");
    if (has_template) {
        rebuild_template(vocab, &template, NULL, writer);
        json_put_template(writer, "]}");
    }
}

void rebuild_bpe_steps(const struct stored_vocab *vocab, const struct pre_row *row, struct json_writer *writer)
{
    if (row->normalizer != NULL)
        json_put_template(writer, "'normalizer': {'type': %s}", row->normalizer);
    else
        json_put_null(writer, "normalizer");
    rebuild_pre_tokenizer(row, writer);
    write_post_processor(vocab, row, writer);
    json_put_template(writer, "'decoder': {'type': 'ByteLevel', 'add_prefix_space': true, 'trim_offsets': true,"
                              " 'use_regex': true}");
}

bool rebuild_bpe_json(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_UTF8};
    bool known;
    const struct pre_row *row = pre_row_find(vocab->pre, &known);
    rebuild_begin(vocab, &writer);
    rebuild_bpe_steps(vocab, row, &writer);
    if (!write_model(vocab, row, &writer, error))
        return false;
    json_end(&writer);
    return true;
}

bool rebuild_bpe_vocab(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_UTF8, .compact = true};
    struct gguf_array merges;
    return get_merges(vocab, &merges, error) && put_tokens(vocab, &merges, NULL, &writer, error);
}

bool rebuild_bpe_merges(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    struct gguf_array merges;
    if (!get_merges(vocab, &merges, error))
        return false;
    buffer_append_text(out, "#version: 0.2\n");
    for (uint64_t i = 0; i < merges.count; i++) {
        struct parted parted = {0};
        if (!part_merge(&merges, i, &parted, error))
            return false;
        buffer_append(out, parted.left, parted.left_length);
        buffer_append_text(out, " ");
        buffer_append(out, parted.right, parted.right_length);
        buffer_append_text(out, "\n");
    }
    return true;
}
