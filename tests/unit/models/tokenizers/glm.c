/* The vocabulary of GLM-ASR, whose text model is a Llama by name. The expected ids are those that the converter's
 * _set_vocab_glmedge gives the tokens of these texts. */
#include "tests/unit/models/tokenizers/kinds.h"

int main(void)
{
    static const char *const files[] = {"config.json", "tokenizer.json", NULL};
    static const char tokenizer[] =
        "{\"added_tokens\":[{\"id\":2,\"content\":\"<|endoftext|>\",\"special\":true},"
        "{\"id\":3,\"content\":\"<|user|>\",\"special\":true}],\"pre_tokenizer\":{\"type\":\"ByteLevel\"},"
        "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}";
    struct gguf_kvs kvs = {0};
    struct error error = {""};
    files_begin();
    files_write_text("tokenizer.json", tokenizer);
    CHECK(!kinds_add(&glm_asr_vocab, files, "{\"architectures\":[\"LlamaForCausalLM\"]}", &kvs, &error));
    CHECK_NAMED(kinds_add(&glm_asr_vocab, files, "{\"architectures\":[\"GlmasrModel\"]}", &kvs, &error), error.message);
    kinds_check_array(&kvs, "tokenizer.ggml.tokens", "a|b|<|endoftext|>|<|user|>|");
    kinds_check_id(&kvs, "tokenizer.ggml.eos_token_id", 2);
    kinds_check_id(&kvs, "tokenizer.ggml.bos_token_id", 2);
    kinds_check_id(&kvs, "tokenizer.ggml.unknown_token_id", 2);
    kinds_check_id(&kvs, "tokenizer.ggml.eot_token_id", 3);
    gguf_kvs_free(&kvs);
    files_remove();
    return check_done();
}
