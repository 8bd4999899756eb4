/* Vocabularies of SentencePiece pieces out of a tokenizer.json: scores, types and flags. Expected values: those of the
 * tokenizer.model from which transformers would make such a file. */
#include "tests/unit/models/tokenizers/kinds.h"

static const char config[] = "{\"vocab_size\":12,\"architectures\":[\"MistralForCausalLM\"]}";
static const char backend[] = "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"unk_token\":\"<unk>\"}";
static const char *const files[] = {"tokenizer.json", "tokenizer_config.json", NULL};

/* Writes a tokenizer of the given merges and vocabulary, whose added token gets the next id, not the one that it
 * states.
 */
static void write_tokenizer(const char *vocab, const char *merges, const char *pre_tokenizer)
{
    char text[2048];
    snprintf(
        text, sizeof text,
        "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true},"
        "{\"id\":11,\"content\":\"\xe2\x96\x81x\",\"special\":false}],"
        "\"pre_tokenizer\":%s,\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"}]},"
        "\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"unk_token\":\"<unk>\",\"vocab\":{%s},\"merges\":[%s]}}",
        pre_tokenizer, vocab, merges);
    files_write_text("tokenizer.json", text);
    files_write_text("tokenizer_config.json", backend);
}

static void check_scores(const char *vocab, const char *merges, const char *scores, const char *types)
{
    struct gguf_kvs kvs = {0};
    struct error error = {""};
    bool space = true;
    write_tokenizer(vocab, merges, "null");
    CHECK(kinds_add(&hf_spm_vocab, files, config, &kvs, &error));
    CHECK_TEXT(error.message, "");
    kinds_check_array(&kvs, "tokenizer.ggml.scores", scores);
    kinds_check_array(&kvs, "tokenizer.ggml.token_type", types);
    CHECK(gguf_get_bool(&kvs, "tokenizer.ggml.add_space_prefix", &space) && !space);
    CHECK(gguf_get_bool(&kvs, "tokenizer.ggml.add_bos_token", &space) && !space); /* no post-processor adds one */
    gguf_kvs_free(&kvs);
}

int main(void)
{
    files_begin();
    /* ids rise with the ranks; [X] is given by the trainer's user; the tokens 10 and 11 are missing */
    check_scores("\"<unk>\":0,\"[X]\":1,\"<0x0A>\":2,\"ab\":3,\"abc\":4,\"a\":5,\"b\":6,\"c\":7,\"\xe2\x96\x81\":8",
                 "\"a b\",\"ab c\"", "-1000|0|0|-0|-1|-2|-3|-4|-5|-1000|-10000|-10000|", "3|1|6|1|1|1|1|1|1|4|5|5|");
    /* pieces of spaces have low ids and the last ranks: they come last */
    check_scores("\"<unk>\":0,\"<0x0A>\":1,\"\xe2\x96\x81\xe2\x96\x81\":2,\"ab\":3,\"a\":4,\"b\":5,\"\xe2\x96\x81\":6",
                 "[\"a\",\"b\"],[\"\xe2\x96\x81\",\"\xe2\x96\x81\"]",
                 "-1000|0|-1e+09|-1|-2|-3|-1e+09|-1000|-10000|-10000|-10000|-10000|", "3|6|1|1|1|1|1|4|5|5|5|5|");
    /* ids say nothing: the order of the merges does */
    check_scores("\"<unk>\":0,\"<0x0A>\":1,\"abc\":2,\"ab\":3,\"a\":4,\"b\":5,\"c\":6", "\"a b\",\"ab c\",\"a bc\"",
                 "-1000|0|-1|-0|-2|-3|-4|-1000|-10000|-10000|-10000|-10000|", "3|6|1|1|1|1|1|4|5|5|5|5|");
    files_remove();
    return check_done();
}
