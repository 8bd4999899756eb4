/* Encoding the check text with small tokenizers, one for each kind of pre-tokenizer, against huggingface/tokenizers
 * (tests/data/make_tokenizers.py). */
#include "models/tokenizers/hf_encode.h"
#include "base/text.h"
#include "models/tokenizers/hf_vocabulary.h"

#include "tests/unit/check.h"

#include <stdlib.h>

static char *read_data(const char *name, const char *suffix, size_t *ret_length)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tokenizers/%s%s", getenv("WFS_TEST_DATA"), name, suffix);
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 65536);
    *ret_length = file != NULL ? fread(text, 1, 65535, file) : 0;
    if (file != NULL)
        fclose(file);
    return text;
}

static bool ids_are(const uint32_t *ids, size_t count, const char *expected)
{
    size_t i = 0;
    char *end;
    for (unsigned long id = strtoul(expected, &end, 10); end != expected; id = strtoul(expected, &end, 10), i++) {
        if (i >= count || ids[i] != id)
            return false;
        expected = end;
    }
    return i == count && count > 0;
}

static void check_tokenizer(const char *name)
{
    size_t length;
    uint32_t *ids;
    size_t count;
    struct error error = {""};
    char *json = read_data(name, ".json", &length), *expected = read_data(name, ".ids", &count);
    struct json_document *document = json_parse(json, length, &error);
    struct hparams *hparams = hparams_parse("{}", 2, &error);
    struct tokenizer_files files = {.tokenizer = document != NULL ? json_root(document) : NULL};
    struct vocab_input input = {
        .hparams = hparams, .owner = hparams, .architecture = "llama", .class_name = "LlamaForCausalLM"};
    struct hf_vocabulary vocabulary;
    if (CHECK_NAMED(document != NULL && hf_vocabulary_load(&input, &files, &vocabulary, &error) == VOCAB_ADDED, name)) {
        struct work work = {ENCODE_WORK};
        bool encoded = hf_encode(&vocabulary, pre_check_text, strlen(pre_check_text), &work, &ids, &count, &error);
        CHECK_TEXT(error.message, "");
        CHECK_NAMED(encoded && ids_are(ids, count, expected), name);
        hf_vocabulary_free(&vocabulary);
    }
    hparams_free(hparams);
    json_free(document);
    free(json);
    free(expected);
}

static bool exceeded; /* whether the last one took more than its work */

/* Encodes a text with a tokenizer of which only what is asked about is given; false, and one line, where that fails. */
static bool encode(const char *json, size_t length, const char *text, size_t *ret_count, uint32_t *ret_first,
                   struct error *error)
{
    uint32_t *ids;
    struct work work = {ENCODE_WORK};
    struct json_document *document = json_parse(json, length, error);
    struct hparams *hparams = hparams_parse("{}", 2, error);
    struct tokenizer_files files = {.tokenizer = document != NULL ? json_root(document) : NULL};
    struct vocab_input input = {.hparams = hparams, .owner = hparams};
    struct hf_vocabulary vocabulary;
    CHECK(document != NULL && hf_vocabulary_load(&input, &files, &vocabulary, error) == VOCAB_ADDED);
    bool encoded = hf_encode(&vocabulary, text, strlen(text), &work, &ids, ret_count, error);
    exceeded = work.left == 0;
    if (encoded && *ret_count > 0)
        *ret_first = ids[0];
    hf_vocabulary_free(&vocabulary);
    hparams_free(hparams);
    json_free(document);
    return encoded;
}

#define SMALL_MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}"
#define SPLIT(regex)                                                                                                   \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex "\"},\"behavior\":\"Isolated\",\"invert\":false}"

/* Patterns that would match for ever, at once or in all; that are none; that cut characters or look back. */
static void hostile_patterns(void)
{
    static const char *const pre_tokenizers[] = {
        SPLIT("(?s)(?:.*.*.*)*[qxz]$"),
        SPLIT("(?s).(?=(?:.?){11}.*\\\\1)()"),
        SPLIT("[a"),
        SPLIT("(?<n>"),
        SPLIT("\\\\C"),
    };
    for (size_t i = 0; i < sizeof pre_tokenizers / sizeof *pre_tokenizers; i++) {
        char json[512];
        struct error error = {""};
        size_t count;
        uint32_t first;
        int length = snprintf(json, sizeof json, "{" SMALL_MODEL ",\"pre_tokenizer\":%s}", pre_tokenizers[i]);
        CHECK_NAMED(!encode(json, (size_t)length, pre_check_text, &count, &first, &error), pre_tokenizers[i]);
        CHECK_NAMED(strstr(error.message, "pattern") != NULL, error.message);
    }
}

/* What multiplies the text or its ids at each step: a file of some kB that would take hundreds of GB. */
static void growth(void)
{
#define TWICE "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"
    static const struct {
        const char *before, *each, *after;
        int count;
    } rows[] = {
        {"\"post_processor\":{\"type\":\"Sequence\",\"processors\":[",
         "{\"type\":\"TemplateProcessing\",\"single\":[" TWICE "]}", "]}", 40},
        {"\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[", TWICE, "]}", 100000},
        {"\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[",
         "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"          \"}", "]}", 40},
        {"\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[", "{\"type\":\"Prepend\",\"prepend\":\"abcdefgh\"}",
         "]}", 100000},
        {"\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[", "{\"type\":\"NFKC\"}", "]}", 100000},
        {"\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[",
         "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}", "]}", 40},
        {"\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[", "{\"type\":\"WhitespaceSplit\"}", "]}",
         100000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buffer json = {0};
        struct error error = {""};
        size_t count;
        uint32_t first;
        buffer_printf(
            &json,
            "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0,\"<0x6E>\":1},\"merges\":[]},%s",
            rows[i].before);
        for (int n = 0; n < rows[i].count; n++) {
            buffer_append_text(&json, n == 0 ? "" : ",");
            buffer_append_text(&json, rows[i].each);
        }
        buffer_printf(&json, "%s}", rows[i].after);
        CHECK_NAMED(!encode((const char *)json.bytes, json.length, pre_check_text, &count, &first, &error),
                    rows[i].each);
        CHECK_NAMED(exceeded, rows[i].each);
        CHECK_NAMED(strstr(error.message, "a normalizer makes the text longer") == error.message ||
                        strstr(error.message, "encoding a short text takes more than") != NULL,
                    error.message);
        buffer_free(&json);
    }
}

/* Letters in one segment, and merges that double: tokens of 1024 letters. Each merge passes over the segment, so 4096
 * letters are within the budget, and 16384 are not. */
static void long_segment(size_t n_letters, bool is_encoded)
{
    enum { DOUBLINGS = 10 };
    static char text[ENCODE_MAX_TEXT + 1], letters[(1 << DOUBLINGS) + 1];
    struct buffer json = {0};
    struct error error = {""};
    size_t count = 0;
    uint32_t first = 0;
    memset(text, 'b', n_letters / 4);
    text[n_letters / 4] = '\0';
    memset(letters, 'a', 1 << DOUBLINGS);
    buffer_append_text(&json,
                       "{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"b\"},\"content\":\"aaaa\"},"
                       "\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (int i = 0; i <= DOUBLINGS; i++)
        buffer_printf(&json, "%s\"%.*s\":%d", i == 0 ? "" : ",", 1 << i, letters, i);
    buffer_append_text(&json, "},\"merges\":[");
    for (int i = 0; i < DOUBLINGS; i++)
        buffer_printf(&json, "%s[\"%.*s\",\"%.*s\"]", i == 0 ? "" : ",", 1 << i, letters, 1 << i, letters);
    buffer_append_text(&json, "]}}");
    CHECK(encode((const char *)json.bytes, json.length, text, &count, &first, &error) == is_encoded);
    if (is_encoded)
        CHECK(count == n_letters >> DOUBLINGS && first == DOUBLINGS);
    else
        CHECK(text_starts_with(error.message, "encoding a short text takes more than"));
    buffer_free(&json);
}

/* Each place of a text is looked up among the added tokens, however many there are. */
static void many_added(void)
{
    enum { MANY = 200000 };
    static char text[ENCODE_MAX_TEXT + 1];
    struct buffer json = {0};
    struct error error = {""};
    size_t count = 0;
    uint32_t first = 0;
    for (size_t i = 0; i < ENCODE_MAX_TEXT; i++)
        text[i] = "<77>a<7"[i % 7];
    buffer_append_text(&json, "{" SMALL_MODEL ",\"added_tokens\":[");
    for (int i = 1; i <= MANY; i++)
        buffer_printf(&json, "%s{\"id\":%d,\"content\":\"<%d>\",\"normalized\":true}", i == 1 ? "" : ",", i, i);
    buffer_append_text(&json, "]}");
    CHECK(encode((const char *)json.bytes, json.length, text, &count, &first, &error));
    CHECK(count == 2 * (ENCODE_MAX_TEXT / 7) && first == 77);
    buffer_free(&json);
}

int main(void)
{
    static const char *const names[] = {"gpt2", "digits", "llama3", "falcon", "merged", "added", "wordpiece"};
    CHECK_NAMED(strlen(pre_check_text) == 431, "the check text has its 431 bytes");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_tokenizer(names[i]);
    hostile_patterns();
    growth();
    long_segment(4096, true);
    long_segment(4 * ENCODE_MAX_TEXT, false);
    many_added();
    return check_done();
}
