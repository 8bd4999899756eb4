#include "products/whisper/forms.h"

#include "models/formats.h"
#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

typedef bool take(const struct checkpoint *checkpoint, struct gguf_kvs *metadata, struct error *error);

static bool by_id(const struct checkpoint *checkpoint, struct gguf_kvs *metadata, struct error *error)
{
    return whisper_tokens_by_id(checkpoint, metadata, error);
}

static bool of_openai(const struct checkpoint *checkpoint, struct gguf_kvs *metadata, struct error *error)
{
    return whisper_tokens_of_openai(checkpoint, "gpt2.tiktoken", metadata, error);
}

/* Expects the tokens, with a '|' after each; or the error. */
static void expect(take *take_tokens, const char *expected)
{
    struct error error = {""};
    struct gguf_kvs metadata = {0};
    struct gguf_array array;
    struct buffer found = {0};
    struct arena *arena = arena_new();
    const struct checkpoint *checkpoint = checkpoint_open(".", formats, &(struct open_options){0}, &error);
    CHECK(checkpoint != NULL);
    bool taken =
        take_tokens(checkpoint, &metadata, &error) && gguf_get_array(&metadata, "tokens", arena, &array, &error);
    for (uint64_t i = 0; taken && i < array.count; i++) {
        size_t length;
        const char *text = gguf_array_string(&array, i, &length);
        buffer_append(&found, text, length);
        buffer_append_text(&found, "|");
    }
    buffer_append(&found, "", 1);
    CHECK_TEXT(taken ? (const char *)found.bytes : error.message, expected);
    buffer_free(&found);
    gguf_kvs_free(&metadata);
    checkpoint_close(checkpoint);
    arena_free(arena);
}

static void spelled(const char *vocab, const char *sorted, const char *as_written)
{
    files_write_text("vocab.json", vocab);
    expect(by_id, sorted);
    expect(of_openai, as_written);
}

int main(void)
{
    files_begin();
    files_write_text("config.json", "{}");
    safetensors_write_ramps("model.safetensors", "a 0 1");
    expect(by_id, "vocab.json is missing");
    expect(of_openai, "its tokens are in gpt2.tiktoken, which is missing: -o whisper=DIR names the directory");
    spelled("{\"b\": 7, \"\\u0120a\": -2, \"<|endoftext|>\": 3, \"\": 1}", " a||<|endoftext|>|b|", "b| a||");
    spelled("{\"\\u0100\\u00ff\": 0}", "", ""); /* a NUL, where CHECK_TEXT() ends */
    spelled("{\"a\": 1.5}", "vocab.json: token 'a' has no whole number", "vocab.json: token 'a' has no whole number");
    spelled("{\"\\u4e00\": 1}", "vocab.json: token '\xe4\xb8\x80' has a character that stands for no byte",
            "vocab.json: token '\xe4\xb8\x80' has a character that stands for no byte");
    spelled("{}", "vocab.json: has no tokens", "vocab.json: has no tokens");
    spelled("[1]", "vocab.json: has no tokens", "vocab.json: has no tokens");
    files_write_text("gpt2.tiktoken", "IQ== 9\n\nIGE= 0\n= 7\n");
    expect(of_openai, "!| a||");
    files_write_text("gpt2.tiktoken", "IQ== 0\nIQ");
    expect(of_openai, "gpt2.tiktoken: line 2 is not a token in base64 and its rank");
    files_write_text("gpt2.tiktoken", "I=Q= 0\n");
    expect(of_openai, "gpt2.tiktoken: line 1 is not a token in base64 and its rank");
    files_write_text("gpt2.tiktoken", "\n");
    expect(of_openai, "gpt2.tiktoken: has no tokens");
    files_remove();
    return check_done();
}
