/* tokenizer.json and vocab.txt of WordPiece vocabularies: marks the rest of a word again, not the start of a word. */
#include "models/tokenizers/rebuild.h"

#include <string.h>

static const char block[] = "\xe2\x96\x81";

/* Returns the text of a token as WordPiece has it, after *ret_prefix. */
static const char *plain_text(const struct token *token, size_t *ret_length, const char **ret_prefix)
{
    bool marked = token->length >= 3 && memcmp(token->text, block, 3) == 0;
    bool as_it_is = token->type == TOKEN_CONTROL || token->type == TOKEN_UNUSED;
    *ret_prefix = as_it_is || marked ? "" : "##";
    *ret_length = token->length - (marked && !as_it_is ? 3 : 0);
    return token->text + (marked && !as_it_is ? 3 : 0);
}

bool rebuild_wordpiece_text(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    for (uint64_t i = 0; i < vocab->n_tokens; i++) {
        size_t length;
        const char *prefix, *text = plain_text(&vocab->tokens[i], &length, &prefix);
        buffer_append_text(out, prefix);
        buffer_append(out, text, length);
        buffer_append_text(out, "\n");
    }
    return true;
}

/* Reports whether a vocabulary has capital letters; uncased ones, recognized by that without the key, have none. */
static bool has_capitals(const struct stored_vocab *vocab)
{
    for (uint64_t i = 0; i < vocab->n_tokens; i++)
        for (size_t at = 0; vocab->tokens[i].type == TOKEN_NORMAL && at < vocab->tokens[i].length; at++)
            if (vocab->tokens[i].text[at] >= 'A' && vocab->tokens[i].text[at] <= 'Z')
                return true;
    return false;
}

static void write_normalizer(const struct stored_vocab *vocab, struct json_writer *writer)
{
    bool strips;
    const char *strips_accents = "null";
    if (gguf_get_bool(vocab->kvs, "tokenizer.ggml.normalizer.strip_accents", &strips))
        strips_accents = strips ? "true" : "false";
    json_put_template(writer,
                      "'normalizer': {'type': 'BertNormalizer', 'clean_text': true, 'handle_chinese_chars': true,"
                      " 'strip_accents': %r, 'lowercase': %b}",
                      strips_accents, rebuild_flag(vocab, "tokenizer.ggml.normalizer.lowercase", !has_capitals(vocab)));
}

static void write_model(const struct stored_vocab *vocab, struct json_writer *writer)
{
    struct buffer key = {0};
    static const struct token usual = {.text = "[UNK]", .length = 5};
    int64_t id = vocab->ids[SPECIAL_UNKNOWN];
    const struct token *unknown = id != NO_TOKEN ? &vocab->tokens[id] : &usual;
    json_put_template(writer,
                      "'model': {'type': 'WordPiece', 'unk_token': %t, 'continuing_subword_prefix': '##',"
                      " 'max_input_chars_per_word': 100, 'vocab': {",
                      unknown->text, unknown->length);
    for (uint64_t i = 0; i < vocab->n_tokens; i++) {
        size_t length;
        const char *prefix, *text = plain_text(&vocab->tokens[i], &length, &prefix);
        key.length = 0;
        buffer_append_text(&key, prefix);
        buffer_append(&key, text, length);
        json_put_key(writer, (const char *)key.bytes, key.length);
        json_put_number(writer, NULL, i);
    }
    buffer_free(&key);
    json_end(writer);
    json_end(writer);
}

bool rebuild_wordpiece_json(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_UTF8};
    int64_t separator =
        vocab->ids[SPECIAL_SEPARATOR] != NO_TOKEN ? vocab->ids[SPECIAL_SEPARATOR] : vocab->ids[SPECIAL_EOS];
    rebuild_begin(vocab, &writer);
    write_normalizer(vocab, &writer);
    json_put_template(&writer, "'pre_tokenizer': {'type': 'BertPreTokenizer'}");
    const struct template template = {vocab->ids[SPECIAL_BOS], separator, NO_TOKEN, 1, 1};
    rebuild_template(vocab, &template, "post_processor", &writer);
    json_put_template(&writer, "'decoder': {'type': 'WordPiece', 'prefix': '##', 'cleanup': true}");
    write_model(vocab, &writer);
    json_end(&writer);
    return true;
}
