/* Tokens of PLaMo 2, a line each, and those of XVERSE, without scores. The expected keys are the converter's, of the
 * same files beside small checkpoints. */
#include "tests/unit/models/tokenizers/kinds.h"

static void write_text(const char *name, const char *text)
{
    files_write(name, text, strlen(text));
}

static void plamo(void)
{
    static const char *const files[] = {"tokenizer.jsonl", "tokenizer_config.json", NULL};
    static const char lines[] = "[\"<|plamo:unk|>\", 0.0, \"UNKNOWN\"]\n[\"<|plamo:bos|>\", 0, \"CONTROL\"]\n\n"
                                "[\"<|plamo:op|>\", -1.5, \"NORMAL\", 1, [2]]\n[\"<0x0A>\", -2, \"BYTE\"]\n"
                                "[\"a\", -3.25]\n[\"a\", -4, \"USER_DEFINED\"]\n";
    struct gguf_kvs kvs = {0};
    struct error error = {""};
    write_text("tokenizer.jsonl", lines);
    write_text("tokenizer_config.json", "{\"bos_token\":\"<|plamo:bos|>\",\"eos_token\":null,\"pad_token\":\"a\","
                                        "\"unk_token\":\"<|plamo:unk|>\"}");
    CHECK_NAMED(kinds_add(&plamo_vocab, files, "{\"vocab_size\":9}", &kvs, &error), error.message);
    kinds_check_array(&kvs, "tokenizer.ggml.tokens",
                      "<|plamo:unk|>|<|plamo:bos|>|<|plamo:op|>|<0x0A>|a|a|[PAD1]|[PAD2]|[PAD3]|");
    kinds_check_array(&kvs, "tokenizer.ggml.scores", "0|0|-1.5|-2|-3.25|-4|-1000|-1000|-1000|");
    kinds_check_array(&kvs, "tokenizer.ggml.token_type", "2|3|3|6|1|1|5|5|5|");
    kinds_check_id(&kvs, "tokenizer.ggml.bos_token_id", 1);
    kinds_check_id(&kvs, "tokenizer.ggml.padding_token_id", 4);
    kinds_check_id(&kvs, "tokenizer.ggml.unknown_token_id", 0);
    kinds_check_id(&kvs, "tokenizer.ggml.eot_token_id", 4);
    CHECK(gguf_kvs_find(&kvs, "tokenizer.ggml.eos_token_id") == NULL);
    gguf_kvs_free(&kvs);
}

/* What is no token, or no line of one, is an error. */
static void broken(void)
{
    static const char *const files[] = {"tokenizer.jsonl", "tokenizer_config.json", NULL};
    static const struct {
        const char *lines, *config, *message;
    } cases[] = {
        {"[\"a\", 1]\n{\"b\": 2}\n", "{}", "tokenizer.jsonl: token 1 is not an array of a text, a score and a type"},
        {"[\"a\"]\n", "{}", "tokenizer.jsonl: token 0 is not an array of a text, a score and a type"},
        {"[\"a\", 1]\n", "{\"bos_token\":\"b\"}", "tokenizer_config.json: bos_token is not a token of tokenizer.jsonl"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_kvs kvs = {0};
        struct error error = {""};
        write_text("tokenizer.jsonl", cases[i].lines);
        write_text("tokenizer_config.json", cases[i].config);
        CHECK(!kinds_add(&plamo_vocab, files, "{\"vocab_size\":2}", &kvs, &error));
        CHECK_TEXT(error.message, cases[i].message);
        gguf_kvs_free(&kvs);
    }
}

static void xverse(void)
{
    static const char *const files[] = {"tokenizer.json", "tokenizer_config.json", NULL};
    static const char tokenizer[] =
        "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true},"
        "{\"id\":1,\"content\":\"<s>\",\"special\":true},{\"id\":7,\"content\":\"<u>\",\"special\":false},"
        "{\"id\":8,\"content\":\"<c>\",\"special\":true}],\"decoder\":{\"type\":\"Sequence\",\"decoders\":[]},"
        "\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"fuse_unk\":true,\"byte_fallback\":true,"
        "\"vocab\":{\"<unk>\":0,\"<s>\":1,\"<0x41>\":2,\"\\u0000\":3,\"a\":4,\"b\":5,\"ab\":6},"
        "\"merges\":[\"a b\"]}}";
    struct gguf_kvs kvs = {0};
    struct error error = {""};
    write_text("tokenizer.json", tokenizer);
    write_text("tokenizer_config.json", "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"bos_token\":\"<s>\"}");
    CHECK(!kinds_add(&xverse_vocab, files, "{\"vocab_size\":8}", &kvs, &error));
    CHECK_TEXT(error.message, "config.json: vocab_size is 8, and the tokenizer has 9 tokens");
    CHECK_NAMED(kinds_add(&xverse_vocab, files, "{\"vocab_size\":9}", &kvs, &error), error.message);
    kinds_check_array(&kvs, "tokenizer.ggml.tokens", "<unk>|<s>|<0x41>|<b'\\x00'>|a|b|ab|<u>|<c>|");
    kinds_check_array(&kvs, "tokenizer.ggml.token_type", "3|3|6|6|1|1|1|4|3|");
    CHECK(gguf_kvs_find(&kvs, "tokenizer.ggml.scores") == NULL);
    kinds_check_id(&kvs, "tokenizer.ggml.bos_token_id", 1);
    gguf_kvs_free(&kvs);
}

int main(void)
{
    files_begin();
    plamo();
    broken();
    xverse();
    files_remove();
    return check_done();
}
