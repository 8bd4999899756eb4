/* What a GGUF says of a tokenizer's special tokens, and which pre-tokenizer it is: rules of gguf-py's SpecialVocab and
 * of get_vocab_base_pre(), whose answers these are. */
#include "formats/checkpoint_builder.h"

#include "models/tokenizers/vocab.h"
#include "sources/location.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

static struct gguf_kvs keys_by(unsigned build, const char *const *files)
{
    struct error error = {""};
    struct checkpoint *checkpoint = checkpoint_new(".");
    struct hparams *hparams = hparams_parse("{}", 2, &error);
    struct vocab_input input = {
        checkpoint, hparams, "llama", "LlamaForCausalLM", 16, hparams, &(const struct references){build}};
    struct gguf_kvs kvs = {0};
    for (; *files != NULL; files++)
        checkpoint_add_side_file(checkpoint, *files, location_open_file(*files, &error));
    CHECK_NAMED(vocab_add(&bpe_vocab, &kvs, &input, &error) == VOCAB_ADDED, "a vocabulary");
    hparams_free(hparams);
    checkpoint_close(checkpoint);
    return kvs;
}

static struct gguf_kvs keys_of(const char *const *files)
{
    return keys_by(0, files);
}

/* Up to b11181, tokenizer_config.json decides about the ends of a text; from b11192 on, the template does. */
static void flags(void)
{
    static const char *const files[] = {"tokenizer.json", "tokenizer_config.json", NULL};
    bool begins = true, ends = false;
    files_write_text(
        "tokenizer.json",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"added_tokens\":["
        "{\"id\":1,\"content\":\"<s>\",\"special\":true}],\"post_processor\":{\"type\":\"TemplateProcessing\","
        "\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}},{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":"
        "\"<s>\"}}],\"special_tokens\":{}}}");
    files_write_text("tokenizer_config.json", "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"bos_token\":\"<s>\","
                                              "\"eos_token\":\"<s>\",\"add_bos_token\":false}");
    static const unsigned builds[] = {10470, 11181, 11192, 0};
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        struct gguf_kvs kvs = keys_by(builds[i], files);
        CHECK(gguf_get_bool(&kvs, "tokenizer.ggml.add_bos_token", &begins) && begins == (i >= 2));
        CHECK(gguf_get_bool(&kvs, "tokenizer.ggml.add_eos_token", &ends) && ends);
        gguf_kvs_free(&kvs);
    }
}

/* ByteLevel means that neither end is added, unless an earlier processor decided; the table keeps its order. Expected
 * is what SpecialVocab of gguf-py makes of the same files. */
static void byte_level(void)
{
    static const char *const files[] = {"tokenizer.json", "tokenizer_config.json", NULL};
    static const struct {
        const char *processor;
        unsigned build;
        int begins, ends; /* -1: none */
        bool ends_first;
    } rows[] = {
        {"{\"type\":\"ByteLevel\"}", 11181, 1, -1},
        {"{\"type\":\"ByteLevel\"}", 11192, 0, 0},
        {"{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"},"
         "{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"<s>\"}"
         "}],"
         "\"special_tokens\":{}}]}",
         0, 0, 1},
        {"{\"type\":\"Sequence\",\"processors\":[{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":"
         "\"A\"}},"
         "{\"SpecialToken\":{\"id\":\"<s>\"}}],\"special_tokens\":{}},{\"type\":\"ByteLevel\"}]}",
         0, 0, 1, true},
        {"null", 0, 1, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool begins = false, ends = false;
        struct buffer text = {0};
        buffer_printf(&text,
                      "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"added_tokens\":["
                      "{\"id\":1,\"content\":\"<s>\",\"special\":true}],\"post_processor\":%s}",
                      rows[i].processor);
        buffer_append(&text, "", 1);
        files_write_text("tokenizer.json", (const char *)text.bytes);
        files_write_text("tokenizer_config.json",
                         "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"bos_token\":\"<s>\","
                         "\"eos_token\":\"<s>\",\"add_bos_token\":true}");
        struct gguf_kvs kvs = keys_by(rows[i].build, files);
        const struct gguf_kv *begin = gguf_kvs_find(&kvs, "tokenizer.ggml.add_bos_token"),
                             *end = gguf_kvs_find(&kvs, "tokenizer.ggml.add_eos_token");
        CHECK(gguf_get_bool(&kvs, "tokenizer.ggml.add_bos_token", &begins) && begins == (rows[i].begins == 1));
        CHECK(gguf_get_bool(&kvs, "tokenizer.ggml.add_eos_token", &ends) == (rows[i].ends >= 0));
        CHECK(ends == (rows[i].ends == 1));
        CHECK(end == NULL || (end < begin) == rows[i].ends_first);
        gguf_kvs_free(&kvs);
        buffer_free(&text);
    }
}

/* Without tokenizer.json the class of the tokenizer says how it splits a text. */
static void older_files(void)
{
    static const char *const files[] = {"vocab.json", "merges.txt", "tokenizer_config.json", NULL};
    static const char *const classes[][2] = {
        {"GPT2Tokenizer", "gpt-2"}, {"Qwen2Tokenizer", "qwen2"}, {"Other", "default"}};
    files_write_text("vocab.json", "{\"a\":0,\"b\":1,\"ab\":2}");
    files_write_text("merges.txt", "#version: 0.2\na b\n");
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        char config[128];
        size_t length;
        struct error error = {""};
        struct arena *arena = arena_new();
        snprintf(config, sizeof config, "{\"tokenizer_class\":\"%s\"}", classes[i][0]);
        files_write_text("tokenizer_config.json", config);
        struct gguf_kvs kvs = keys_of(files);
        const char *name = gguf_get_string(&kvs, "tokenizer.ggml.pre", arena, &length, &error);
        CHECK_TEXT(name ? name : error.message, classes[i][1]);
        arena_free(arena);
        gguf_kvs_free(&kvs);
    }
}

/* A token of tokenizer.json that is not special is, once a file names it with flags of its own, but not where it is
 * named alone; and one whose characters are bytes in that alphabet is what they decode to. */
static void named_tokens(void)
{
    static const char *const files[] = {"tokenizer.json", "tokenizer_config.json", NULL};
    static const int types[] = {1, 3, 4, 4};
    struct arena *arena = arena_new();
    struct gguf_array array;
    struct error error;
    size_t length;
    files_write_text("tokenizer.json", "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},"
                                       "\"decoder\":{\"type\":\"ByteLevel\"},\"added_tokens\":["
                                       "{\"id\":1,\"content\":\"<x>\",\"normalized\":false},"
                                       "{\"id\":2,\"content\":\"<y>\",\"normalized\":false},"
                                       "{\"id\":3,\"content\":\"na\u00efve\",\"normalized\":false}]}");
    files_write_text(
        "tokenizer_config.json",
        "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"added_tokens_decoder\":{},\"bos_token\":"
        "{\"__type\":\"AddedToken\",\"content\":\"<x>\",\"normalized\":false},\"eos_token\":\"<y>\","
        "\"chat_template\":[{\"name\":\"a-\u00e9\",\"template\":\"T\"},{\"name\":\"a_ \",\"template\":\"U\"}]}");
    struct gguf_kvs kvs = keys_of(files);
    CHECK(gguf_get_array(&kvs, "tokenizer.ggml.token_type", arena, &array, &error) && array.count == 4);
    for (uint64_t i = 0; i < 4; i++) {
        int64_t type;
        CHECK(gguf_array_i64(&array, i, &type) && type == types[i]);
    }
    CHECK(gguf_get_array(&kvs, "tokenizer.ggml.tokens", arena, &array, &error) && array.count == 4);
    const char *text = gguf_array_string(&array, 3, &length);
    CHECK(text != NULL && length == 7 && memcmp(text, "na\ufffdve", 7) == 0);
    CHECK(gguf_get_array(&kvs, "tokenizer.chat_templates", arena, &array, &error) && array.count == 1);
    CHECK_TEXT(gguf_get_string(&kvs, "tokenizer.chat_template.a__", arena, &length, &error), "U");
    gguf_kvs_free(&kvs);
    arena_free(arena);
}

int main(void)
{
    files_begin();
    flags();
    byte_level();
    older_files();
    named_tokens();
    files_remove();
    return check_done();
}
