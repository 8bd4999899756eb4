/* tokenizer.model of Llama 3 into tokenizer.json. The expected merges were made with the loop of transformers'
 * TikTokenConverter (extract_vocab_merges_from_model) over the same ranks in Python. */
#include "models/meta/meta.h"

#include "tests/unit/check.h"

static const char ranks[] =
    "YQ== 0\nYg== 1\nYw== 2\n/w== 3\nIA== 4\nIg== 5\nYWI= 6\nYmM= 7\nYWJj 8\nIGE= 9\nIv8= 10\nYWJjYWI= 11\n";

static const char *const merges[] = {"a b", "b c", "a bc", "ab c", "\xc4\xa0 a", "\" \xc3\xbf", "abc ab"};
static const char *const vocabulary[] = {"a",  "b",  "c",   "\xc3\xbf",  "\xc4\xa0",   "\"",
                                         "ab", "bc", "abc", ("\u0120a"), "\"\xc3\xbf", "abcab"};

static void check_json(void)
{
    struct error error;
    bool damaged;
    struct buffer out = {0};
    struct tiktoken *tiktoken = tiktoken_parse(ranks, sizeof ranks - 1, &damaged, &error);
    CHECK(tiktoken != NULL && tiktoken_count(tiktoken) == 12);
    meta_write_tokenizer(tiktoken, true, &out);
    struct json_document *document = json_parse((const char *)out.bytes, out.length, &error);
    const struct json *model = json_get(json_root(document), "model"), *written = json_get(model, "merges");
    CHECK(json_count(written) == sizeof merges / sizeof *merges);
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++)
        CHECK_TEXT(json_string(json_at(written, i), NULL), merges[i]);
    for (size_t i = 0; i < sizeof vocabulary / sizeof *vocabulary; i++) {
        uint64_t rank;
        CHECK_NAMED(json_u64(json_get(json_get(model, "vocab"), vocabulary[i]), &rank) && rank == i, vocabulary[i]);
    }
    const struct json *added = json_get(json_root(document), "added_tokens");
    uint64_t id;
    CHECK(json_count(added) == 256 && json_u64(json_get(json_at(added, 0), "id"), &id) && id == 12);
    json_free(document);
    tiktoken_free(tiktoken);
    buffer_free(&out);
}

/* What byte pair encoding with all tokens before a token leaves of it: two tokens, or more. */
static void check_splits(void)
{
    static const char lines[] =
        "YQ== 0\nYg== 1\nYw== 2\nYWI= 3\nYWJj 4\nYmM= 5\nY2Fi 6\nYWE= 7\nYmNi 8\nYWNhYw== 9\nYWFh 10\n";
    static const struct {
        uint32_t rank;
        bool is_merge;
        uint32_t left, right;
    } splits[] = {
        {2, false, 0, 0}, /* c */
        {3, true, 0, 1},  /* a b */
        {4, true, 3, 2},  /* ab c: bc comes later */
        {5, true, 1, 2},  /* b c */
        {6, true, 2, 3},  /* c ab */
        {8, true, 5, 1},  /* bc b */
        {9, false, 0, 0}, /* a c a c */
        {10, true, 7, 0}, /* aa a: the first of two pairs */
    };
    struct error error;
    bool damaged;
    struct tiktoken *tiktoken = tiktoken_parse(lines, sizeof lines - 1, &damaged, &error);
    CHECK(tiktoken != NULL);
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        uint32_t left = 0, right = 0;
        CHECK(tiktoken_split(tiktoken, splits[i].rank, &left, &right) == splits[i].is_merge);
        CHECK(!splits[i].is_merge || (left == splits[i].left && right == splits[i].right));
    }
    tiktoken_free(tiktoken);
}

static void check_special_tokens(void)
{
    static const struct {
        bool llama31;
        unsigned index;
        const char *name;
    } tokens[] = {
        {false, 0, "<|begin_of_text|>"},
        {false, 5, "<|reserved_special_token_3|>"},
        {false, 6, "<|start_header_id|>"},
        {false, 8, "<|reserved_special_token_4|>"},
        {false, 9, "<|eot_id|>"},
        {false, 10, "<|reserved_special_token_5|>"},
        {false, 255, "<|reserved_special_token_250|>"},
        {true, 4, "<|finetune_right_pad_id|>"},
        {true, 5, "<|reserved_special_token_2|>"},
        {true, 8, "<|eom_id|>"},
        {true, 10, "<|python_tag|>"},
        {true, 11, "<|reserved_special_token_3|>"},
        {true, 255, "<|reserved_special_token_247|>"},
    };
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        char name[64];
        CHECK_TEXT(meta_special_token(tokens[i].llama31, tokens[i].index, name), tokens[i].name);
    }
}

static void check_refused(void)
{
    static const struct {
        const char *text;
        bool damaged;
    } texts[] = {
        {"", false},
        {"\n\x05<unk>", false},
        {"YQ== 1\n", false},
        {"YQ== 0\nYg== 2\n", true},
        {"YQ== 0\nYQ== 1\n", true},
        {"YQ= 0\n", true},
        {"Y!== 0\n", true},
        {"YQ== 0\n\n", true},
        {"YQ== 0\nYg==\n", true},
        {"==== 0\n", true},
        {"YQ== 0\nYg== 01\n", true},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct error error;
        bool damaged;
        struct tiktoken *tiktoken = tiktoken_parse(texts[i].text, strlen(texts[i].text), &damaged, &error);
        CHECK(tiktoken == NULL && damaged == texts[i].damaged);
        tiktoken_free(tiktoken);
    }
}

int main(void)
{
    check_json();
    check_splits();
    check_special_tokens();
    check_refused();
    return check_done();
}
