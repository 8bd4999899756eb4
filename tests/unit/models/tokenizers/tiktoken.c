/* tokenizer.model of Llama 3 into tokenizer.json. The expected merges were made with the loop of transformers'
 * TikTokenConverter (extract_vocab_merges_from_model) over the same ranks in Python. */
#include "base/arena.h"
#include "base/encodings.h"
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
    struct tiktoken *tiktoken = tiktoken_parse(ranks, sizeof ranks - 1, TIKTOKEN_RANKS_SAID, &damaged, &error);
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

/* What byte pair encoding with all tokens before a token leaves of it: two parts, or more. As QwenModel.bpe of the
 * converter has it. */
static void check_merges(void)
{
    static const char lines[] = "YQ== 0\nYg== 1\nYw== 2\nYWI= 3\nYWJj 4\nYmM= 5\nY2Fi 6\nYWE= 7\nYmNi 8\nYWNhYw== 9\n"
                                "YWFh 10\neP8= 11\neP9h 12\n";
    static const char *const made[] = {
        NULL,        NULL,  NULL,   "a b", "ab c", "b c",
        "c ab",      "a a", "bc b", NULL,  "aa a", "x \u00ff", /* bytes that are no tokens */
        "x\u00ff a",
    };
    struct error error;
    bool damaged;
    struct tiktoken *tiktoken = tiktoken_parse(lines, sizeof lines - 1, TIKTOKEN_RANKS_SAID, &damaged, &error);
    CHECK(tiktoken != NULL && tiktoken_count(tiktoken) == sizeof made / sizeof *made);
    for (uint32_t rank = 0; rank < sizeof made / sizeof *made; rank++) {
        struct buffer text = {0};
        bool is_made = tiktoken_append_merge(tiktoken, rank, &text);
        buffer_append(&text, "", 1);
        CHECK(is_made == (made[rank] != NULL));
        CHECK_TEXT((const char *)text.bytes, made[rank] != NULL ? made[rank] : "");
        buffer_free(&text);
    }
    tiktoken_free(tiktoken);
}

/* Ranks that are counted: what a line says is passed over, and tokens that are there already. */
static void check_counted(void)
{
    static const char lines[] = "YQ== 0\nYg== 9\nYQ== 7\nYw== 2\nYg== 4\nYWI= 5\n";
    static const char *const tokens[] = {"a", "b", "c", "ab"};
    struct error error;
    bool damaged;
    struct tiktoken *tiktoken = tiktoken_parse(lines, sizeof lines - 1, TIKTOKEN_RANKS_COUNTED, &damaged, &error);
    CHECK(tiktoken != NULL && tiktoken_count(tiktoken) == 4);
    for (uint32_t rank = 0; rank < 4; rank++) {
        struct buffer text = {0};
        tiktoken_append(tiktoken, rank, &text);
        buffer_append(&text, "", 1);
        CHECK_TEXT((const char *)text.bytes, tokens[rank]);
        buffer_free(&text);
    }
    struct buffer merge = {0};
    CHECK(tiktoken_append_merge(tiktoken, 3, &merge) && merge.length == 3 && memcmp(merge.bytes, "a b", 3) == 0);
    buffer_free(&merge);
    tiktoken_free(tiktoken);
}

/* Tokens of `step`, 2 `step`, ... bytes, each made of the others in every way. */
static bool parses_chain(uint32_t n_tokens, uint32_t step)
{
    struct buffer text = {0};
    struct arena *arena = arena_new();
    struct error error;
    bool damaged;
    for (uint32_t i = 0; i < n_tokens; i++) {
        uint32_t length = (i + 1) * step;
        char *token = arena_alloc(arena, length);
        memset(token, 'a', length);
        buffer_printf(&text, "%s %u\n", base64_encode(arena, token, length), i);
    }
    struct tiktoken *tiktoken =
        tiktoken_parse((const char *)text.bytes, text.length, TIKTOKEN_RANKS_SAID, &damaged, &error);
    CHECK(damaged == (tiktoken == NULL));
    bool parsed = tiktoken != NULL;
    tiktoken_free(tiktoken);
    arena_free(arena);
    buffer_free(&text);
    return parsed;
}

static void check_work(void)
{
    CHECK(parses_chain(128, 1));  /* as the spaces of vocabularies in use */
    CHECK(!parses_chain(768, 1)); /* whose merges would take 150 MB */
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
        struct tiktoken *tiktoken =
            tiktoken_parse(texts[i].text, strlen(texts[i].text), TIKTOKEN_RANKS_SAID, &damaged, &error);
        CHECK(tiktoken == NULL && damaged == texts[i].damaged);
        tiktoken_free(tiktoken);
    }
}

int main(void)
{
    check_json();
    check_merges();
    check_counted();
    check_work();
    check_special_tokens();
    check_refused();
    return check_done();
}
