/* "rwkv", from rwkv_vocab_v20230424.txt: a token a line, as a Python literal (text or bytes) between its number and its
 * length in bytes. A GGUF has each token as Python shows bytes, without quotes. Literals are parsed here; nothing is
 * executed. conversion/base.py (_set_vocab_rwkv_world); the Python reference manual, 2.4.1, and repr() of bytes. */
#include "base/text.h"
#include "models/tokenizers/token_list.h"
#include "models/tokenizers/tokenizer_files.h"

#include <inttypes.h>
#include <string.h>
#include <utf8proc.h>

static const char file_name[] = "rwkv_vocab_v20230424.txt";

struct literal {
    const char *at, *end; /* between the quotes */
    bool is_bytes;
};

/* Takes `n_digits` hexadecimal digits and their value; false if there are fewer. */
static bool take_digits(struct literal *literal, unsigned n_digits, uint32_t *ret_value)
{
    if ((size_t)(literal->end - literal->at) < n_digits)
        return false;
    *ret_value = 0;
    for (unsigned i = 0; i < n_digits; i++) {
        int digit = text_hex_digit(*literal->at++);
        if (digit < 0)
            return false;
        *ret_value = *ret_value << 4 | (uint32_t)digit;
    }
    return true;
}

static bool append_character(struct buffer *out, uint32_t character)
{
    utf8proc_uint8_t encoded[4];
    bool is_surrogate = character >= 0xd800 && character < 0xe000;
    if (character > 0x10ffff || is_surrogate)
        return false;
    buffer_append(out, encoded, (size_t)utf8proc_encode_char((utf8proc_int32_t)character, encoded));
    return true;
}

/* Reads an escape, after the backslash. */
static bool take_escape(struct literal *literal, struct buffer *out)
{
    static const char letters[] = "abfnrtv\\'\"", meant[] = "\a\b\f\n\r\t\v\\'\"";
    if (literal->at == literal->end)
        return false;
    char letter = *literal->at++;
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;
    uint32_t value = 0;
    if (found != NULL) {
        buffer_append(out, &meant[found - letters], 1);
        return true;
    }
    if (letter == 'x' && !take_digits(literal, 2, &value))
        return false;
    if (letter == 'x' && literal->is_bytes) {
        buffer_append_le(out, value, 1);
        return true;
    }
    if ((letter == 'u' || letter == 'U') && !literal->is_bytes && !take_digits(literal, letter == 'u' ? 4 : 8, &value))
        return false;
    return (letter == 'x' || ((letter == 'u' || letter == 'U') && !literal->is_bytes)) && append_character(out, value);
}

/* Appends the bytes that a literal stands for. Fails for forms that the models' file lacks (octal digits, character
 * names, triple quotes). */
static bool read_literal(const char *text, size_t length, struct buffer *out)
{
    bool is_bytes = length > 0 && *text == 'b';
    text += is_bytes;
    length -= is_bytes;
    if (length < 2 || (*text != '\'' && *text != '"') || text[length - 1] != *text)
        return false;
    struct literal literal = {text + 1, text + length - 1, is_bytes};
    while (literal.at < literal.end) {
        char c = *literal.at++;
        if (c == '\\' ? !take_escape(&literal, out) : c == *text || (is_bytes && (unsigned char)c >= 0x80))
            return false;
        if (c != '\\')
            buffer_append(out, &c, 1);
    }
    return true;
}

static bool has_byte(const unsigned char *bytes, size_t length, char byte)
{
    return length > 0 && memchr(bytes, byte, length) != NULL;
}

/* Appends bytes as Python shows them. */
static void append_shown(struct buffer *out, const unsigned char *bytes, size_t length)
{
    static const char controls[] = "\t\n\r", letters[] = "tnr";
    unsigned char quote = has_byte(bytes, length, '\'') && !has_byte(bytes, length, '"') ? '"' : '\'';
    for (size_t i = 0; i < length; i++) {
        const char *found = bytes[i] != '\0' ? strchr(controls, bytes[i]) : NULL;
        if (bytes[i] == quote || bytes[i] == '\\')
            buffer_printf(out, "\\%c", bytes[i]);
        else if (found != NULL)
            buffer_printf(out, "\\%c", letters[found - controls]);
        else if (bytes[i] < ' ' || bytes[i] >= 0x7f)
            buffer_printf(out, "\\x%02x", bytes[i]);
        else
            buffer_append(out, &bytes[i], 1);
    }
}

/* Reads the token of one line as a GGUF has it, in the arena. */
static bool read_line(const char *line, size_t length, struct arena *arena, const char **ret_text, size_t *ret_length)
{
    const char *first = memchr(line, ' ', length), *last = text_last(line, length, ' ');
    struct buffer token = {0}, shown = {0};
    bool good = first != NULL && first < last && read_literal(first + 1, (size_t)(last - first - 1), &token);
    char *end = NULL;
    good = good && strtoull(last + 1, &end, 10) == token.length && end == line + length && end > last + 1;
    if (good) {
        append_shown(&shown, token.bytes, token.length);
        *ret_text = arena_strndup(arena, (const char *)shown.bytes, shown.length);
        *ret_length = shown.length;
    }
    buffer_free(&token);
    buffer_free(&shown);
    return good;
}

static uint64_t count_lines(const char *text, size_t length)
{
    uint64_t n_lines = length > 0 && text[length - 1] != '\n';
    for (const char *at = text; (at = memchr(at, '\n', length - (size_t)(at - text))) != NULL; at++)
        n_lines++;
    return n_lines;
}

static bool read_lines(struct token_list *list, const char *text, size_t length, struct error *error)
{
    uint64_t id = 1;
    token_list_set(list, 0, "<s>", 3, 0, TOKEN_CONTROL);
    for (size_t at = 0; at < length; id++) {
        const char *end = memchr(text + at, '\n', length - at), *shown;
        size_t line = end != NULL ? (size_t)(end - text) - at : length - at, shown_length;
        if (!read_line(text + at, line, list->arena, &shown, &shown_length))
            return error_set(error, "%s: line %" PRIu64 " is not a number, a literal, and its length", file_name, id);
        token_list_set(list, id, shown, shown_length, 0, TOKEN_NORMAL);
        at += line + 1;
    }
    return true;
}

static bool add_tokens(struct gguf_kvs *kvs, const struct vocab_input *input, char *text, size_t length,
                       struct error *error)
{
    enum { USUAL_TOKENS = 65536 };
    struct token_list list = {0};
    uint64_t n_tokens = USUAL_TOKENS;
    length = unify_newlines(text, length);
    uint64_t n_given = 1 + count_lines(text, length);
    json_u64(hparams_get(input->hparams, "vocab_size"), &n_tokens);
    if (n_given > n_tokens)
        return error_set(error, "%s has %" PRIu64 " tokens, but vocab_size is %" PRIu64, file_name, n_given, n_tokens);
    bool added = token_count_fits(input, n_tokens, n_given, error) && token_list_init(&list, n_tokens, 0, error) &&
                 read_lines(&list, text, length, error);
    if (added) {
        token_list_write(&list, "rwkv", NULL, false, kvs);
    }
    token_list_free(&list);
    return added;
}

/* Adds the special ids: two line feeds end a turn; the first token begins and ends a text, whatever the files say. */
static bool add_special(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    static const struct special_id ids[] = {{"eot", 261}, {"bos", 0}, {"eos", 0}};
    static const struct special_vocab_options options = {.ids = ids, .n_ids = sizeof ids / sizeof *ids};
    struct tokenizer_files files;
    if (!tokenizer_files_load(input->checkpoint, &files, error))
        return false;
    bool added = special_vocab_write(kvs, input, &files, &options, error);
    tokenizer_files_free(&files);
    gguf_set_u32(kvs, "tokenizer.ggml.bos_token_id", 0);
    gguf_set_u32(kvs, "tokenizer.ggml.eos_token_id", 0);
    return added;
}

static enum vocab_result add(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error)
{
    size_t length;
    bool absent;
    char *text = document_text(input->checkpoint, file_name, &length, &absent, error);
    if (text == NULL)
        return absent ? VOCAB_ABSENT : VOCAB_FAILED;
    bool added = add_tokens(kvs, input, text, length, error) && add_special(kvs, input, error);
    free(text);
    return added ? VOCAB_ADDED : VOCAB_FAILED;
}

const struct vocab rwkv_vocab = {.name = "RWKV's world", .file = file_name, .add = add};
