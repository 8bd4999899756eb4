/* Encoding the check text with small tokenizers, one for each kind of pre-tokenizer, against huggingface/tokenizers
 * (tests/data/make_tokenizers.py). */
#include "models/tokenizers/hf_encode.h"
#include "models/tokenizers/pre.h"

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
    struct vocab_input input = {.hparams = hparams, .family = "llama", .architecture = "LlamaForCausalLM"};
    struct hf_vocabulary vocabulary;
    if (CHECK_NAMED(document != NULL && hf_vocabulary_load(&input, &files, &vocabulary, &error) == VOCAB_ADDED, name)) {
        bool encoded = hf_encode(&vocabulary, pre_check_text, strlen(pre_check_text), &ids, &count, &error);
        CHECK_TEXT(error.message, "");
        CHECK_NAMED(encoded && ids_are(ids, count, expected), name);
        hf_vocabulary_free(&vocabulary);
    }
    hparams_free(hparams);
    json_free(document);
    free(json);
    free(expected);
}

/* A pattern that would match for ever, and one that is none, are errors. */
static void hostile_patterns(void)
{
    static const char *const patterns[] = {"(?s)(?:.*.*.*)*[qxz]$", "[a", "(?<n>"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        char json[512];
        struct error error;
        uint32_t *ids;
        size_t count;
        int length =
            snprintf(json, sizeof json,
                     "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"pre_tokenizer\":{\"type\":\"Split\","
                     "\"pattern\":{\"Regex\":\"%s\"},\"behavior\":\"Isolated\",\"invert\":false}}",
                     patterns[i]);
        struct json_document *document = json_parse(json, (size_t)length, &error);
        struct hparams *hparams = hparams_parse("{}", 2, &error);
        struct tokenizer_files files = {.tokenizer = json_root(document)};
        struct vocab_input input = {.hparams = hparams};
        struct hf_vocabulary vocabulary;
        CHECK(hf_vocabulary_load(&input, &files, &vocabulary, &error) == VOCAB_ADDED);
        CHECK_NAMED(!hf_encode(&vocabulary, pre_check_text, strlen(pre_check_text), &ids, &count, &error), patterns[i]);
        hf_vocabulary_free(&vocabulary);
        hparams_free(hparams);
        json_free(document);
    }
}

int main(void)
{
    static const char *const names[] = {"gpt2", "digits", "llama3", "falcon", "merged", "added", "wordpiece"};
    CHECK_NAMED(strlen(pre_check_text) == 431, "the check text has its 431 bytes");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_tokenizer(names[i]);
    hostile_patterns();
    return check_done();
}
