/* Vocabularies of ranked tokens and what the tokenizers' code adds to them. The expected keys are the converter's, of
 * the same files beside small checkpoints. */
#include "tests/unit/models/tokenizers/kinds.h"

static const char *const side_files[] = {
    "tiktoken.model", "hy.tiktoken", "qwen.tiktoken", "tokenizer_config.json", "generation_config.json",
    "config.json",    NULL};

static const char merges[] = "a b|b c|ab c|\u00ff \u0120|c ab|";

/* Names of special tokens that are the texts of others. */
static void kimi(void)
{
    static const char config[] = "{\"vocab_size\":15,\"bos_token_id\":3,\"eos_token_id\":5}";
    static const struct vocab *const kinds[] = {&kimi_vocab, &kimi_linear_vocab};
    static const uint64_t ends[] = {5, 9};
    files_write_text("tiktoken.model", "YQ== 0\nYg== 1\nYw== 2\nYWI= 3\nYmM= 4\nYWJj 5\n/yA= 6\nY2Fi 7\n");
    files_write_text("tokenizer_config.json",
                     "{\"eos_token\":\"[EOS]\",\"added_tokens_decoder\":{\"8\":{\"content\":\"[BOS]\"},"
                     "\"9\":{\"content\":\"[EOS]\"},\"10\":{\"content\":\"ab\"},\"11\":{\"content\":\"<x>\"},"
                     "\"12\":{\"content\":\"<x>\"}}}");
    for (size_t i = 0; i < 2; i++) {
        struct gguf_kvs kvs = {0};
        struct error error = {""};
        CHECK_NAMED(kinds_add(kinds[i], side_files, config, &kvs, &error), error.message);
        kinds_check_array(&kvs, "tokenizer.ggml.tokens",
                          "a|b|c|[PAD3]|bc|abc|\u00ff\u0120|cab|[BOS]|[EOS]|ab|[PAD11]|<x>|<|reserved_token_13|>|"
                          "<|reserved_token_14|>|");
        kinds_check_array(&kvs, "tokenizer.ggml.token_type", "1|1|1|5|1|1|1|1|3|3|3|5|3|3|3|");
        kinds_check_array(&kvs, "tokenizer.ggml.merges", merges);
        kinds_check_id(&kvs, "tokenizer.ggml.bos_token_id", 3);
        kinds_check_id(&kvs, "tokenizer.ggml.eos_token_id", ends[i]);
        gguf_kvs_free(&kvs);
    }
}

static void hunyuan(void)
{
    static const struct {
        const struct vocab *vocab;
        const char *width;
        uint64_t begin;
        bool knows_turns;
    } kinds[] = {
        {&hunyuan_ranks_vocab, "64", 3, true},
        {&hunyuan_ranks_vocab, "4096", 127958, true},
        {&hunyuan_moe_ranks_vocab, "64", 127959, false},
    };
    files_write_text("hy.tiktoken", "YQ== 0\nYg== 1\nYw== 2\nYWI= 3\nYg== 4\nYmM= 5\nYWJj 6\n/yA= 7\nY2Fi 8\n");
    files_write_text("tokenizer_config.json", "{\"eos_token\":\"<|eos|>\"}");
    files_write_text("generation_config.json", "{\"eos_token_id\":[7,6]}");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct gguf_kvs kvs = {0};
        struct error error = {""};
        char config[128];
        snprintf(config, sizeof config, "{\"vocab_size\":16,\"bos_token_id\":3,\"eos_token_id\":5,\"hidden_size\":%s}",
                 kinds[i].width);
        CHECK_NAMED(kinds_add(kinds[i].vocab, side_files, config, &kvs, &error), error.message);
        kinds_check_array(&kvs, "tokenizer.ggml.tokens",
                          "a|b|c|ab|bc|abc|\u00ff\u0120|cab|<|endoftext|>|<|startoftext|>|<|bos|>|<|eos|>|<|pad|>|"
                          "<|extra_0|>|<|extra_1|>|<|extra_2|>|");
        kinds_check_array(&kvs, "tokenizer.ggml.token_type", "1|1|1|1|1|1|1|1|3|3|3|3|3|3|3|3|");
        kinds_check_array(&kvs, "tokenizer.ggml.merges", merges);
        kinds_check_id(&kvs, "tokenizer.ggml.bos_token_id", kinds[i].begin);
        kinds_check_id(&kvs, "tokenizer.ggml.eos_token_id", 5);
        CHECK((gguf_kvs_find(&kvs, "tokenizer.ggml.eot_token_id") != NULL) == kinds[i].knows_turns);
        gguf_kvs_free(&kvs);
    }
}

/* Its 208 special tokens come after the ranks, and the first of them begins and ends texts unless the files say what
 * does. */
static void qwen(void)
{
    enum { FIRST = 8, N_EXTRA = 205 };
    static const struct {
        const char *config;
        uint64_t end;
        bool begins;
    } kinds[] = {{"{\"vocab_size\":216}", FIRST, true}, {"{\"vocab_size\":216,\"eos_token_id\":10}", 10, false}};
    struct buffer tokens = {0};
    buffer_append_text(&tokens, "a|b|c|ab|bc|abc|\u00ff\u0120|cab|<|endoftext|>|<|im_start|>|<|im_end|>|");
    for (int i = 0; i < N_EXTRA; i++)
        buffer_printf(&tokens, "<|extra_%d|>|", i);
    buffer_append(&tokens, "", 1);
    files_write_text("qwen.tiktoken", "YQ== 0\nYg== 1\nYw== 2\nYWI= 3\nYmM= 4\nYWJj 5\n/yA= 6\nY2Fi 7\n");
    files_write_text("tokenizer_config.json", "{}");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct gguf_kvs kvs = {0};
        struct error error = {""};
        CHECK_NAMED(kinds_add(&qwen_vocab, side_files, kinds[i].config, &kvs, &error), error.message);
        kinds_check_array(&kvs, "tokenizer.ggml.tokens", (const char *)tokens.bytes);
        kinds_check_array(&kvs, "tokenizer.ggml.merges", merges);
        kinds_check_id(&kvs, "tokenizer.ggml.eos_token_id", kinds[i].end);
        kinds_check_id(&kvs, "tokenizer.ggml.unknown_token_id", FIRST);
        CHECK((gguf_kvs_find(&kvs, "tokenizer.ggml.bos_token_id") != NULL) == kinds[i].begins);
        gguf_kvs_free(&kvs);
    }
    buffer_free(&tokens);
}

int main(void)
{
    files_begin();
    for (size_t i = 0; side_files[i] != NULL; i++)
        files_write_text(side_files[i], "{}");
    kimi();
    hunyuan();
    qwen();
    files_remove();
    return check_done();
}
