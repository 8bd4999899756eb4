/* XLM-RoBERTa's tokenizer.json: whether runs of spaces count as one, as the tokenizers library does with these steps.
 */
#include "tests/unit/models/tokenizers/kinds.h"

#define MODEL             "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"a\",-1]]}"
#define REPLACES(pattern) "{\"type\":\"Replace\",\"pattern\":" pattern ",\"content\":\" \"}"

static const struct {
    const char *tokenizer, *config;
    bool removes;
} rows[] = {
    {MODEL "}", "{}", false},
    {MODEL "}", "{\"clean_up_tokenization_spaces\":true}", true},
    /* of transformers 5 */
    {MODEL ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"},"
           "{\"type\":\"Metaspace\"}]}}",
     "{}", true},
    {MODEL ",\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}}", "{\"clean_up_tokenization_spaces\":false}", true},
    {MODEL ",\"pre_tokenizer\":{\"type\":\"Metaspace\"}}", "{}", false},
    /* of earlier versions */
    {MODEL ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"}," REPLACES(
         "{\"Regex\":\" {2,}\"}") "]}}",
     "{}", true},
    {MODEL ",\"normalizer\":" REPLACES("{\"String\":\"  \"}") "}", "{}", false},
};

int main(void)
{
    static const char *const files[] = {"config.json", "tokenizer.json", "tokenizer_config.json", NULL};
    files_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gguf_kvs kvs = {0};
        struct error error = {""};
        bool removes = !rows[i].removes;
        files_write_text("tokenizer.json", rows[i].tokenizer);
        files_write_text("tokenizer_config.json", rows[i].config);
        CHECK_NAMED(kinds_add(&xlmr_vocab, files, "{}", &kvs, &error), error.message);
        CHECK_NAMED(gguf_get_bool(&kvs, "tokenizer.ggml.remove_extra_whitespaces", &removes), rows[i].tokenizer);
        CHECK_NAMED(removes == rows[i].removes, rows[i].tokenizer);
        gguf_kvs_free(&kvs);
    }
    files_remove();
    return check_done();
}
