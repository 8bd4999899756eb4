/* Files of a tokenizer from the keys of a GGUF. The order of merges is that of transformers' generate_merges(). */
#include "models/tokenizers/rebuild.h"

#include "base/buffer.h"
#include "models/sentencepiece_model.pb-c.h"
#include "tests/unit/check.h"

#include <stdlib.h>

static const struct rebuilt_file *find(const char *name, const struct gguf_kvs *kvs)
{
    for (const struct rebuilt_file *file = rebuilt_files; file->name != NULL; file++)
        if (strcmp(file->name, name) == 0 && rebuilt_file_applies(file, kvs))
            return file;
    return NULL;
}

/* The text of a file, to be freed; NULL where there is none. */
static char *rebuilt(const char *name, const struct gguf_kvs *kvs)
{
    struct error error;
    struct buffer text = {0};
    const struct rebuilt_file *file = find(name, kvs);
    if (file == NULL || !rebuilt_file_write(file, kvs, &text, &error)) {
        buffer_free(&text);
        return NULL;
    }
    buffer_append(&text, "", 1);
    return (char *)text.bytes;
}

static void set_texts(struct gguf_kvs *kvs, const char *key, const char *const *texts, size_t n_texts)
{
    struct buffer elements = {0};
    for (size_t i = 0; i < n_texts; i++)
        gguf_append_string(&elements, texts[i], strlen(texts[i]));
    gguf_set_array(kvs, key, GGUF_STRING, n_texts, &elements);
}

static void set_types(struct gguf_kvs *kvs, const int *types, size_t n_types)
{
    struct buffer elements = {0};
    for (size_t i = 0; i < n_types; i++)
        buffer_append_le(&elements, (uint64_t)types[i], 4);
    gguf_set_array(kvs, "tokenizer.ggml.token_type", GGUF_I32, n_types, &elements);
}

static void set_scores(struct gguf_kvs *kvs, const float *scores, size_t n_scores)
{
    struct buffer elements = {0};
    for (size_t i = 0; i < n_scores; i++) {
        uint32_t bits;
        memcpy(&bits, &scores[i], sizeof bits);
        buffer_append_le(&elements, bits, 4);
    }
    gguf_set_array(kvs, "tokenizer.ggml.scores", GGUF_F32, n_scores, &elements);
}

/* The place of the first one in the second, for comparing orders; -1: it is not there. */
static long place(const char *wanted, const char *text)
{
    const char *at = strstr(text, wanted);
    return at != NULL ? (long)(at - text) : -1;
}

/* A piece whose score is the number that the converter gives to tokens that are no pieces: 1000 pieces of Gemma on. */
static void scores_of_pieces(void)
{
    static const char *const texts[] = {"<unk>", "ve", "ew", "v", "e", "w"};
    static const int types[] = {2, 1, 1, 1, 1, 1};
    static const float scores[] = {0, -524, -1000, -2000, -2001, -2002};
    struct gguf_kvs kvs = {0};
    gguf_set_text(&kvs, "tokenizer.ggml.model", "llama");
    set_texts(&kvs, "tokenizer.ggml.tokens", texts, 6);
    set_scores(&kvs, scores, 6);
    set_types(&kvs, types, 6);
    char *json = rebuilt("tokenizer.json", &kvs);
    const char *merges = json != NULL ? strstr(json, "\"merges\"") : NULL;
    if (CHECK(merges != NULL)) {
        long ve = place("\"v\",\n        \"e\"", merges), ew = place("\"e\",\n        \"w\"", merges);
        CHECK(ve > 0 && ew > 0);
        CHECK(ve < ew);
    }
    free(json);
    gguf_kvs_free(&kvs);
}

/* tokenizer.json of a Unigram vocabulary without keys that say what is added; `has_first`: its <s> is the first token
 * of a text, as XLM-R's is. */
static char *unigram(bool has_first)
{
    static const char *const texts[] = {"<s>", "<pad>", "</s>", "<unk>", "\xe2\x96\x81"};
    static const int types[] = {3, 3, 3, 2, 1};
    static const float scores[] = {0, 0, 0, 0, -1};
    struct gguf_kvs kvs = {0};
    gguf_set_text(&kvs, "general.architecture", has_first ? "bert" : "t5");
    gguf_set_text(&kvs, "tokenizer.ggml.model", "t5");
    set_texts(&kvs, "tokenizer.ggml.tokens", texts, 5);
    set_scores(&kvs, scores, 5);
    set_types(&kvs, types, 5);
    if (has_first)
        gguf_set_u32(&kvs, "tokenizer.ggml.bos_token_id", 0);
    gguf_set_u32(&kvs, "tokenizer.ggml.eos_token_id", 2);
    char *json = rebuilt("tokenizer.json", &kvs);
    gguf_kvs_free(&kvs);
    return json;
}

/* As often as `wanted` is between two marks of the text. */
static unsigned count_between(const char *text, const char *first, const char *last, const char *wanted)
{
    const char *at = strstr(text, first), *end = at != NULL ? strstr(at, last) : NULL;
    unsigned n_found = 0;
    while (end != NULL && (at = strstr(at + 1, wanted)) != NULL && at < end)
        n_found++;
    return n_found;
}

static void unigram_templates(void)
{
    char *t5 = unigram(false), *xlmr = unigram(true);
    if (CHECK(t5 != NULL && xlmr != NULL)) {
        CHECK(count_between(t5, "\"single\"", "\"pair\"", "\"<s>\"") == 0);
        CHECK(count_between(t5, "\"single\"", "\"pair\"", "\"</s>\"") == 1);
        CHECK(count_between(t5, "\"pair\"", "\"special_tokens\"", "\"</s>\"") == 2);
        CHECK(count_between(xlmr, "\"single\"", "\"pair\"", "\"<s>\"") == 1);
        CHECK(count_between(xlmr, "\"single\"", "\"pair\"", "\"</s>\"") == 1);
        CHECK(count_between(xlmr, "\"pair\"", "\"special_tokens\"", "\"<s>\"") == 1);
        CHECK(count_between(xlmr, "\"pair\"", "\"special_tokens\"", "\"</s>\"") == 3);
    }
    free(t5);
    free(xlmr);
}

/* Of a vocabulary that was moved to make room for four tokens: the first name that was made up is the mask's place, and
 * the model has what it had. */
static void moved_pieces(void)
{
    static const char *const texts[] = {"<s>", "<pad>", "</s>", "<unk>", "\xe2\x96\x81", "a", "[PAD5]", "[PAD6]"};
    static const char *const pieces[] = {"<unk>", "<s>", "</s>", "\xe2\x96\x81", "a"};
    static const int types[] = {3, 3, 3, 2, 1, 1, 5, 5};
    static const float scores[] = {0, 0, 0, 0, -1, -2, -10000, -10000};
    struct gguf_kvs kvs = {0};
    struct buffer packed = {0};
    struct error error = {""};
    gguf_set_text(&kvs, "general.architecture", "bert");
    gguf_set_text(&kvs, "tokenizer.ggml.model", "t5");
    set_texts(&kvs, "tokenizer.ggml.tokens", texts, 8);
    set_scores(&kvs, scores, 8);
    set_types(&kvs, types, 8);
    char *json = rebuilt("tokenizer.json", &kvs), *config = rebuilt("tokenizer_config.json", &kvs);
    CHECK(json != NULL && strstr(json, "[PAD") == NULL);
    CHECK(count_between(json, "\"id\": 6", "\"special\"", "\"<mask>\"") == 1);
    CHECK(count_between(json, "\"id\": 6", "\"special\"", "\"lstrip\": true") == 1);
    CHECK(config != NULL && place("\"mask_token\": \"<mask>\"", config) > 0);
    CHECK(config != NULL && place("\"cls_token\": \"<s>\"", config) > 0);
    CHECK(find("spiece.model", &kvs) == NULL);
    const struct rebuilt_file *file = find("sentencepiece.bpe.model", &kvs);
    CHECK(file != NULL && rebuilt_file_write(file, &kvs, &packed, &error));
    Wfs__Sentencepiece__Model *model = wfs__sentencepiece__model__unpack(NULL, packed.length, packed.bytes);
    if (CHECK(model != NULL && model->n_pieces == sizeof pieces / sizeof *pieces))
        for (size_t i = 0; i < model->n_pieces; i++)
            CHECK_NAMED(model->pieces[i]->piece.len == strlen(pieces[i]) &&
                            memcmp(model->pieces[i]->piece.data, pieces[i], strlen(pieces[i])) == 0,
                        pieces[i]);
    wfs__sentencepiece__model__free_unpacked(model, NULL);
    buffer_free(&packed);
    free(json);
    free(config);
    gguf_kvs_free(&kvs);
}

/* Gemma 4 has its merges, and tokens among the others that no merge makes. */
static void made_and_added(void)
{
    static const char *const texts[] = {"<bos>", "a", "b", "\xc3\xa9", "ab", "<x>"}, *const merges[] = {"a b"};
    static const int types[] = {3, 1, 1, 1, 1, 1};
    struct gguf_kvs kvs = {0};
    gguf_set_text(&kvs, "tokenizer.ggml.model", "gemma4");
    set_texts(&kvs, "tokenizer.ggml.tokens", texts, 6);
    set_types(&kvs, types, 6);
    set_texts(&kvs, "tokenizer.ggml.merges", merges, 1);
    char *json = rebuilt("tokenizer.json", &kvs);
    if (CHECK(json != NULL)) {
        CHECK(count_between(json, "\"added_tokens\"", "\"normalizer\"", "\"content\"") == 2);
        CHECK(count_between(json, "\"added_tokens\"", "\"normalizer\"", "\"<x>\"") == 1);
        CHECK(place("\"a\",\n        \"b\"", json) > 0);
    }
    free(json);
    gguf_kvs_free(&kvs);
}

/* Pieces that are each the one before and a letter more: of any two of them a merge makes a third. */
static bool of_nested_pieces(size_t n_pieces, struct error *error)
{
    static char letters[1000];
    struct gguf_kvs kvs = {0};
    struct buffer text = {0}, elements = {0};
    memset(letters, 'a', sizeof letters);
    for (size_t length = 1; length <= n_pieces; length++)
        gguf_append_string(&elements, letters, length);
    gguf_set_text(&kvs, "tokenizer.ggml.model", "llama");
    gguf_set_array(&kvs, "tokenizer.ggml.tokens", GGUF_STRING, n_pieces, &elements);
    const struct rebuilt_file *file = find("tokenizer.json", &kvs);
    bool written = CHECK(file != NULL) && rebuilt_file_write(file, &kvs, &text, error);
    CHECK(text.length < 64 * (n_pieces * n_pieces + (128 << 10)));
    buffer_free(&text);
    gguf_kvs_free(&kvs);
    return written;
}

static void nested_pieces(void)
{
    struct error error;
    CHECK(of_nested_pieces(100, &error));
    CHECK(!of_nested_pieces(600, &error));
    CHECK_TEXT(error.message,
               "tokenizer.ggml.tokens: long pieces: the squares of their lengths make 72180100, more than 64 for each "
               "of their bytes");
}

/* DeepSeek-V3's own class adds the beginning token that its pre-tokenizer's hash has, where tokenizer.json and keys of
 * newer converters have none: with LlamaTokenizerFast both come back, as measured with b11549 and transformers 4.57. */
static void beginning_by_class(void)
{
    static const char *const texts[] = {"a", "b"};
    static const struct {
        const char *pre;
        bool adds, by_class;
    } rows[] = {{"deepseek-v3", false, true}, {"deepseek-v3", true, false}, {"joyai-llm", false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gguf_kvs kvs = {0};
        gguf_set_text(&kvs, "tokenizer.ggml.model", "gpt2");
        gguf_set_text(&kvs, "tokenizer.ggml.pre", rows[i].pre);
        set_texts(&kvs, "tokenizer.ggml.tokens", texts, 2);
        set_texts(&kvs, "tokenizer.ggml.merges", texts, 0);
        gguf_set_bool(&kvs, "tokenizer.ggml.add_bos_token", rows[i].adds);
        char *json = rebuilt("tokenizer_config.json", &kvs);
        if (CHECK_NAMED(json != NULL, rows[i].pre)) {
            bool adds = strstr(json, "\"add_bos_token\": true") != NULL;
            CHECK(adds == (rows[i].adds || rows[i].by_class));
            CHECK((strstr(json, "LlamaTokenizerFast") != NULL) == rows[i].by_class);
            CHECK((strstr(json, "\"unk_token\": null") != NULL) == rows[i].by_class);
        }
        free(json);
        gguf_kvs_free(&kvs);
    }
}

int main(void)
{
    beginning_by_class();
    moved_pieces();
    made_and_added();
    scores_of_pieces();
    nested_pieces();
    unigram_templates();
    return check_done();
}
