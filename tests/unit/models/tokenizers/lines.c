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
    CHECK_NAMED(kinds_add_by(10470, &plamo_vocab, files, "{\"vocab_size\":9}", &kvs, &error), error.message);
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

#define PLAMO2 "{\"tokenizer_class\":\"Plamo2Tokenizer\""

/* From b11549 on, the tokenizer's class decides. Expected are the rules of conversion/base.py, _set_vocab_plamo(). */
static void plamo_classes(void)
{
    static const char *const files[] = {"tokenizer.jsonl", "tokenizer_config.json", NULL};
    static const struct {
        const char *class, *model, *types;
        unsigned end_of_turn;
    } rows[] = {{"Plamo2Tokenizer", "plamo2", "3|3|3|3|", 1}, {"Plamo3Tokenizer", "plamo3", "1|3|3|1|", 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char config[128];
        struct gguf_kvs kvs = {0};
        struct error error = {""};
        bool adds = false;
        struct arena *arena = arena_new();
        snprintf(config, sizeof config, "{\"tokenizer_class\":\"%s\",\"add_bos_token\":true,\"add_eos_token\":null}",
                 rows[i].class);
        write_text("tokenizer.jsonl", "[\"<|plamo:begin_\", 0, \"CONTROL\"]\n[\"<|plamo:op|>\", 0]\n"
                                      "[\"<|plamo:tag|>\", 0]\n[\":plamo|>\", 0, \"CONTROL\"]\n");
        write_text("tokenizer_config.json", config);
        CHECK_NAMED(kinds_add(&plamo_vocab, files, "{\"vocab_size\":4}", &kvs, &error), error.message);
        CHECK_TEXT(gguf_get_text(&kvs, "tokenizer.ggml.model", arena), rows[i].model);
        kinds_check_array(&kvs, "tokenizer.ggml.token_type", rows[i].types);
        kinds_check_id(&kvs, "tokenizer.ggml.eot_token_id", rows[i].end_of_turn);
        CHECK(gguf_get_bool(&kvs, "tokenizer.ggml.add_bos_token", &adds) && adds);
        CHECK(gguf_kvs_find(&kvs, "tokenizer.ggml.add_eos_token") == NULL);
        gguf_kvs_free(&kvs);
        arena_free(arena);
    }
}

/* What is no token, or no line of one, is an error. */
static void broken(void)
{
    static const char *const files[] = {"tokenizer.jsonl", "tokenizer_config.json", NULL};
    static const struct {
        const char *lines, *config, *message;
    } cases[] = {
        {"[\"a\", 1]\n", "{}", "tokenizer_config.json: tokenizer_class is neither Plamo2Tokenizer nor Plamo3Tokenizer"},
        {"[\"a\", 1]\n", PLAMO2 "}", "tokenizer.jsonl: <|plamo:op|> is missing"},
        {"[\"a\", 1]\n{\"b\": 2}\n", PLAMO2 "}",
         "tokenizer.jsonl: token 1 is not an array of a text, a score and a type"},
        {"[\"a\"]\n", PLAMO2 "}", "tokenizer.jsonl: token 0 is not an array of a text, a score and a type"},
        {"[\"a\", 1]\n", PLAMO2 ",\"bos_token\":\"b\"}",
         "tokenizer_config.json: bos_token is not a token of tokenizer.jsonl"},
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
    plamo_classes();
    broken();
    xverse();
    files_remove();
    return check_done();
}
