/* The tokenizer of RWKV's world: literals of Python, and how Python shows the bytes that they stand for. Expected
 * values: repr() of them in Python 3.11. */
#include "models/tokenizers/vocab.h"
#include "tests/unit/check.h"
#include "tests/unit/files.h"
#include "tests/unit/models/tokenizers/kinds.h"

static const char file_name[] = "rwkv_vocab_v20230424.txt";
static const char *const files[] = {file_name, "tokenizer_config.json", NULL};

static void tokens(void)
{
    struct gguf_kvs kvs = {0};
    struct error error = {""};
    files_write_text(file_name, "1 '\\n\\n' 2\n2 ' a' 2\n3 \"it's\" 4\n4 '\"q\"' 3\n5 '\\'\"' 2\n6 'é' 2\n7 '\\\\n' 2\n"
                                "8 '😀' 4\n9 b'\\xe4\\xb8' 2\n10 b\"\\xff'\" 2\n11 b'\\x80\\t\"' 3\n12 '\\x00' 1\n"
                                "13 '\\xe9\\u00e9\\U0001f600' 8\n14 '  ' 2");
    CHECK_NAMED(
        kinds_add(&rwkv_vocab, files, "{\"vocab_size\":17,\"bos_token_id\":5,\"eos_token_id\":6}", &kvs, &error),
        error.message);
    kinds_check_array(
        &kvs, "tokenizer.ggml.tokens",
        "<s>|\\n\\n| a|it's|\"q\"|\\'\"|\\xc3\\xa9|\\\\n|\\xf0\\x9f\\x98\\x80|\\xe4\\xb8|\\xff'|\\x80\\t\"|\\x00|"
        "\\xc3\\xa9\\xc3\\xa9\\xf0\\x9f\\x98\\x80|  |[PAD15]|[PAD16]|");
    kinds_check_array(&kvs, "tokenizer.ggml.token_type", "3|1|1|1|1|1|1|1|1|1|1|1|1|1|1|5|5|");
    kinds_check_id(&kvs, "tokenizer.ggml.bos_token_id", 0);
    kinds_check_id(&kvs, "tokenizer.ggml.eos_token_id", 0);
    kinds_check_id(&kvs, "tokenizer.ggml.eot_token_id", 261);
    gguf_kvs_free(&kvs);
}

/* Lines that are not what the file has. */
static void refused(void)
{
    static const char *const lines[] = {
        "1 'a' 2",         "1 'a 1",         "1 a 1",      "1 'a'",
        "1 b'\xc3\xa9' 2", "1 '\\ud800' 3",  "1 '\\q' 2",  "1 '\\x8' 1",
        "1 'a'b' 3",       "1 '\\' 1",       "'a' 1",      "1 'a' 1x",
        "1 'a' ",          "1 b'\\u00e9' 6", "1 '' 0\n\n", "1 '\\U00110000' 4",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct gguf_kvs kvs = {0};
        struct error error = {""};
        files_write_text(file_name, lines[i]);
        CHECK_NAMED(!kinds_add(&rwkv_vocab, files, "{\"vocab_size\":9}", &kvs, &error), lines[i]);
        CHECK_TEXT(strstr(error.message, " is not a number, a literal, and its length"),
                   " is not a number, a literal, and its length");
        gguf_kvs_free(&kvs);
    }
}

static void sizes(void)
{
    static const struct {
        const char *config, *error;
    } rows[] = {
        {"{\"vocab_size\":2}", "rwkv_vocab_v20230424.txt has 3 tokens, but vocab_size is 2"},
        {"{\"vocab_size\":16000000}", "the vocabulary has 16000000 tokens, 3 of them in the tokenizer: more than the "
                                      "16 rows of the token embedding"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gguf_kvs kvs = {0};
        struct error error = {""};
        files_write_text(file_name, "1 'a' 1\n2 'b' 1\n");
        CHECK(!kinds_add(&rwkv_vocab, files, rows[i].config, &kvs, &error));
        CHECK_TEXT(error.message, rows[i].error);
        gguf_kvs_free(&kvs);
    }
}

int main(void)
{
    files_begin();
    files_write_text("tokenizer_config.json", "{}");
    tokens();
    refused();
    sizes();
    files_remove();
    return check_done();
}
