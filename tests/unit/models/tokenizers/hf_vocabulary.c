/* Vocabularies of many tokens, many of them added, each of which is looked for among the others: comparing them one by
 * one would take hours. */
#include "models/formats.h"
#include "models/tokenizers/hf_encode.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

#include <stdlib.h>

enum { MANY = 200000 };

static const char piece_names[][16] = {"tokenizer", "config"};

static void append_tokens(struct buffer *out, const char *before, const char *each, const char *after)
{
    buffer_append_text(out, before);
    for (int i = 0; i < MANY; i++) {
        buffer_append_text(out, i == 0 ? "" : ",");
        buffer_printf(out, each, i, i);
    }
    buffer_append_text(out, after);
}

/* What the texts of the two files give, as a list of tokens; `check` looks at it. */
static void with_vocabulary(const struct buffer *tokenizer, const struct buffer *config,
                            void (*check)(const struct hf_vocabulary *vocabulary, const struct token_list *list))
{
    const struct buffer *texts[] = {tokenizer, config};
    struct json_document *documents[2];
    struct error error = {""};
    for (size_t i = 0; i < 2; i++) {
        documents[i] = json_parse((const char *)texts[i]->bytes, texts[i]->length, &error);
        CHECK_NAMED(documents[i] != NULL, piece_names[i]);
    }
    struct hparams *hparams = hparams_parse("{}", 2, &error);
    struct tokenizer_files files = {.tokenizer = json_root(documents[0]), .config = json_root(documents[1])};
    struct vocab_input input = {
        .hparams = hparams, .owner = hparams, .architecture = "llama", .class_name = "LlamaForCausalLM"};
    struct hf_vocabulary vocabulary;
    struct token_list list;
    CHECK(hf_vocabulary_load(&input, &files, &vocabulary, &error) == VOCAB_ADDED);
    CHECK(hf_token_list(&vocabulary, vocabulary.n_ids, &list, &error));
    check(&vocabulary, &list);
    token_list_free(&list);
    hf_vocabulary_free(&vocabulary);
    hparams_free(hparams);
    json_free(documents[0]);
    json_free(documents[1]);
}

static bool token_is(const struct token_list *list, uint64_t id, const char *text, enum token_type type)
{
    const struct token *token = &list->tokens[id];
    return id < list->n_tokens && token->length == strlen(text) && memcmp(token->text, text, token->length) == 0 &&
           token->type == type;
}

static void check_specials(const struct hf_vocabulary *vocabulary, const struct token_list *list)
{
    CHECK(vocabulary->n_added == 2 * MANY && vocabulary->n_ids == 1 + 2 * MANY);
    CHECK(token_is(list, 1 + 77, "<77>", TOKEN_USER_DEFINED) && token_is(list, 1 + MANY + 88, "s88", TOKEN_CONTROL));
}

/* added_tokens_decoder x additional_special_tokens, and decoders that are asked about each. */
static void many_specials(void)
{
    struct buffer tokenizer = {0}, config = {0};
    append_tokens(&tokenizer,
                  "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"decoder\":{\"type\":\"Sequence\","
                  "\"decoders\":[",
                  "{\"type\":\"Fuse\"}", "]}}");
    append_tokens(&config, "{\"tokenizer_class\":\"PreTrainedTokenizer\",\"added_tokens_decoder\":{",
                  "\"%d\":{\"content\":\"<%d>\",\"normalized\":false}", "},");
    append_tokens(&config, "\"additional_special_tokens\":[", "\"s%d\"", "]}");
    with_vocabulary(&tokenizer, &config, check_specials);
    buffer_free(&tokenizer);
    buffer_free(&config);
}

static void check_array(const struct hf_vocabulary *vocabulary, const struct token_list *list)
{
    uint64_t id = 0;
    CHECK(vocabulary->n_model_tokens == MANY && vocabulary->n_added == MANY && vocabulary->n_ids == MANY);
    CHECK(token_is(list, 77, "t77", TOKEN_CONTROL));
    CHECK(hf_model_id(vocabulary, "t199999", 7, &id) && id == MANY - 1);
    CHECK(!hf_model_id(vocabulary, "t200000", 7, &id) && !hf_model_id(vocabulary, "", 0, &id));
}

/* A vocabulary that is an array, and added tokens that are looked for in it. */
static void many_in_array(void)
{
    struct buffer tokenizer = {0}, config = {0};
    append_tokens(&tokenizer, "{\"model\":{\"type\":\"Unigram\",\"vocab\":[", "[\"t%d\",-%d]", "]},");
    append_tokens(&tokenizer, "\"added_tokens\":[", "{\"content\":\"t%d\",\"id\":%d,\"special\":true}", "]}");
    buffer_append_text(&config, "{\"tokenizer_class\":\"PreTrainedTokenizer\"}");
    with_vocabulary(&tokenizer, &config, check_array);
    buffer_free(&tokenizer);
    buffer_free(&config);
}

static void check_older(const struct hf_vocabulary *vocabulary, const struct token_list *list)
{
    CHECK(vocabulary->n_added == 6);
    CHECK(token_is(list, 1, "<end>", TOKEN_CONTROL) && !vocabulary->added[0].normalized);
    CHECK(token_is(list, 2, "<tool>", TOKEN_USER_DEFINED));
    CHECK(token_is(list, 3, "<call>", TOKEN_CONTROL) && vocabulary->added[2].normalized);
    CHECK(token_is(list, 4, "<begin>", TOKEN_CONTROL));
    CHECK(token_is(list, 5, "<|odd|>", TOKEN_CONTROL) && token_is(list, 6, " x", TOKEN_USER_DEFINED));

    struct hf_vocabulary kept = *vocabulary;
    struct token_list as_they_are;
    struct error error;
    kept.keeps_added = true;
    CHECK(hf_token_list(&kept, kept.n_ids, &as_they_are, &error));
    CHECK(token_is(&as_they_are, 5, "<|odd|>", TOKEN_USER_DEFINED));
    CHECK(token_is(&as_they_are, 6, "\xe2\x96\x81x", TOKEN_USER_DEFINED));
    token_list_free(&as_they_are);
}

/* Without added_tokens_decoder the tokens of tokenizer.json are added once more, and are special where they have a
 * name; their other flags stay. Compared with PreTrainedTokenizerFast. */
static void specials_of_older_files(void)
{
    static const char tokenizer_text[] =
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"added_tokens\":["
        "{\"id\":1,\"content\":\"<end>\",\"special\":true,\"normalized\":false},"
        "{\"id\":2,\"content\":\"<tool>\",\"special\":false,\"normalized\":false},"
        "{\"id\":3,\"content\":\"<call>\",\"special\":false,\"normalized\":true},"
        "{\"id\":4,\"content\":\"<begin>\",\"special\":false,\"normalized\":false},"
        "{\"id\":5,\"content\":\"<|odd|>\",\"special\":false,\"normalized\":false},"
        "{\"id\":6,\"content\":\"\xe2\x96\x81x\",\"special\":false,\"normalized\":true}]}";
    struct buffer tokenizer = {0}, config = {0};
    buffer_append_text(&tokenizer, tokenizer_text);
    buffer_append_text(&config, "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"eos_token\":\"<call>\","
                                "\"bos_token\":{\"content\":\"<begin>\"}}");
    with_vocabulary(&tokenizer, &config, check_older);
    buffer_free(&tokenizer);
    buffer_free(&config);
}

static void check_extra(const struct hf_vocabulary *vocabulary, const struct token_list *list)
{
    CHECK(vocabulary->n_added == 3 && vocabulary->n_ids == 4);
    CHECK(token_is(list, 1, "<more>", TOKEN_CONTROL) && token_is(list, 2, "<image>", TOKEN_CONTROL));
    CHECK(token_is(list, 3, "<video>", TOKEN_CONTROL));
}

/* Special tokens by names of the model's own: what get_vocab_base() of the converter gives with transformers. */
static void extra_specials(void)
{
    struct buffer tokenizer = {0}, config = {0};
    buffer_append_text(&tokenizer, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}");
    buffer_append_text(&config, "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"extra_special_tokens\":{"
                                "\"image_token\":\"<image>\",\"more_token\":\"<more>\",\"video_token\":{\"content\":"
                                "\"<video>\",\"normalized\":true,\"__type\":\"AddedToken\"}},"
                                "\"additional_special_tokens\":[\"<more>\"]}");
    with_vocabulary(&tokenizer, &config, check_extra);
    buffer_free(&tokenizer);
    buffer_free(&config);
}

/* The ids of a text by what is made of vocab.txt; expected: BertTokenizerFast of transformers. */
static void check_lines(const char *config, const uint32_t *expected, size_t n_expected)
{
    static const char text[] = "The cats \xc3\x89 \xe4\xb8\xad\xe4\xb8\xad x";
    struct error error = {""};
    struct tokenizer_files files;
    struct hf_vocabulary vocabulary;
    struct work work = {1 << 20};
    uint32_t *ids = NULL;
    size_t n_ids = 0;
    files_write_text("tokenizer_config.json", config);
    const struct checkpoint *checkpoint = checkpoint_open_side_files(".", formats, false, &error);
    struct hparams *hparams = hparams_parse("{}", 2, &error);
    const struct vocab_input input = {
        .checkpoint = checkpoint, .hparams = hparams, .owner = hparams, .architecture = "bert"};
    CHECK(checkpoint != NULL && tokenizer_files_load(checkpoint, &files, &error));
    CHECK(hf_vocabulary_load(&input, &files, &vocabulary, &error) == VOCAB_ADDED);
    CHECK(hf_encode(&vocabulary, text, strlen(text), &work, &ids, &n_ids, &error));
    CHECK_NAMED(n_ids == n_expected && memcmp(ids, expected, n_ids * sizeof *ids) == 0, config);
    hf_vocabulary_free(&vocabulary);
    tokenizer_files_free(&files);
    hparams_free(hparams);
    checkpoint_close(checkpoint);
}

/* Added tokens in a container of the wrong type are refused, as transformers refuses them. */
static void wrong_containers(void)
{
    static const char *const rows[][3] = {
        {"tokenizer_config.json", "{\"added_tokens_decoder\":[{\"content\":\"<a>\"}]}",
         "tokenizer_config.json: added_tokens_decoder is not an object"},
        {"tokenizer.json", "{\"added_tokens\":{\"0\":{\"id\":0,\"content\":\"<a>\"}}}",
         "tokenizer.json: added_tokens is not an array"},
        {"added_tokens.json", "[\"<a>\"]", "added_tokens.json: not a JSON object"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error = {""};
        struct tokenizer_files files;
        files_write_text(rows[i][0], rows[i][1]);
        const struct checkpoint *checkpoint = checkpoint_open_side_files(".", formats, false, &error);
        CHECK(checkpoint != NULL && !tokenizer_files_load(checkpoint, &files, &error));
        CHECK_TEXT(error.message, rows[i][2]);
        checkpoint_close(checkpoint);
        remove(rows[i][0]);
    }
}

static void lines(void)
{
    static const uint32_t usual[] = {2, 5, 6, 7, 8, 9, 9, 1, 3}, cased[] = {2, 10, 6, 7, 1, 1, 1, 3},
                          accents[] = {2, 5, 6, 7, 1, 9, 9, 1, 3};
    files_begin();
    files_write_text("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\ne\n\xe4\xb8\xad\nThe\n");
    check_lines("{\"tokenizer_class\":\"BertTokenizer\"}", usual, sizeof usual / sizeof *usual);
    check_lines("{\"tokenizer_class\":\"BertTokenizer\",\"do_lower_case\":false,\"tokenize_chinese_chars\":false}",
                cased, sizeof cased / sizeof *cased);
    check_lines("{\"tokenizer_class\":\"BertTokenizer\",\"strip_accents\":false}", accents,
                sizeof accents / sizeof *accents);
    wrong_containers();
    files_remove();
}

int main(void)
{
    lines();
    extra_specials();
    many_specials();
    specials_of_older_files();
    many_in_array();
    return check_done();
}
