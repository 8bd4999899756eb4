/* tokenizer.json of byte-level BPE, with its pre-tokenizers. */
#include "base/text.h"
#include "base/text_index.h"
#include "models/tokenizers/rebuild.h"

#include <inttypes.h>
#include <string.h>

/* Pre-tokenizers by llama.cpp's names: the normalizer and the steps of the tokenizers that these names were made for.
 * Regular expressions are the published ones, which llama.cpp's own sometimes approximate. */

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES       "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define WORDS        "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define SIGNS        " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define UPPER        "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER        "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED_SIGNS  " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES
#define LLAMA3       CONTRACTIONS "|" WORDS "|\\p{N}{1,3}|" SIGNS "|" SPACES
#define QWEN2        CONTRACTIONS "|" WORDS "|\\p{N}|" SIGNS "|" SPACES
#define O200K        UPPER "*" LOWER "+" CONTRACTIONS "?|" UPPER "+" LOWER "*" CONTRACTIONS "?|\\p{N}{1,3}|" CASED_SIGNS
#define BLOOM        " ?[^(\\s|[.,!?\xe2\x80\xa6\xe3\x80\x82\xef\xbc\x8c\xe3\x80\x81\xe0\xa5\xa4\xdb\x94\xd8\x8c])]+"
#define CJK          "[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+"
#define CJK_HANGUL   "[\xe4\xb8\x80-\xe9\xbe\xa5\xe0\xa0\x80-\xe4\xb8\x80\xea\xb0\x80-\xed\x9f\xbf]+"
#define CASED        "\\p{Lu}\\p{Ll}\\p{Lt}"
#define HAN_UPPER    "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define HAN_LOWER    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define LETTERS      "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
#define DEEPSEEK3    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|" LETTERS "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES

static const char *const llama3[] = {LLAMA3, NULL};
static const char *const qwen2[] = {QWEN2, NULL};
static const char *const qwen35[] = {
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES, NULL};
static const char *const tekken[] = {UPPER "*" LOWER "+|" UPPER "+" LOWER "*|\\p{N}|" CASED_SIGNS, NULL};
static const char *const o200k[] = {O200K, NULL};
static const char *const grouped_o200k[] = {"\\d{1,3}(?=(?:\\d{3})*\\b)", O200K, NULL};
static const char *const deepseek3[] = {"\\p{N}{1,3}", CJK, DEEPSEEK3, NULL};
static const char *const deepseek_coder[] = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", CJK_HANGUL, NULL};
static const char *const bloom[] = {BLOOM, NULL};
static const char *const minicpm5[] = {"\\p{N}{1,3}", CONTRACTIONS "|" WORDS "|\\p{N}+|" SIGNS "|" SPACES, NULL};
static const char *const seed[] = {CONTRACTIONS "|" WORDS "|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" SPACES, NULL};
static const char *const bailing[] = {
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|"
    "\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
    NULL};
static const char *const superbpe[] = {"\\p{N}+", "(?=(\\d{3})+(?!\\d))", NULL};
static const char *const laguna[] = {"[^\\n]+|[\\n]+", QWEN2, NULL};
static const char *const exaone_moe[] = {CONTRACTIONS
                                         "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}|"
                                         " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
                                         NULL};
static const char *const jais2[] = {CONTRACTIONS
                                    "|" WORDS "|\\p{N}{1,3}|" SIGNS
                                    "|\\s*[\\r\\n]+|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|"
                                    "\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}",
                                    NULL};
static const char *const chameleon[] = {
    "<sentinel:[0-9]+>",
    "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
    "([\\t\\n]|    |  )",
    "\\p{N}",
    "[\\p{P}!-/:-@\\[-`{-~]",
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    NULL};
/* Letters with a case, except some that Unicode added later. */
static const char *const deepseek_llm[] = {
    "[\\r\\n]",
    "\\s?[" CASED "&&[^\\x{560}-\\x{588}\\x{10C7}-\\x{10FF}\\x{1C80}-\\x{1C88}\\x{2D00}-\\x{2D2D}\\x{A790}-\\x{AB68}"
    "\\x{10570}-\\x{105BC}\\x{16E40}-\\x{16E7F}\\x{1D400}-\\x{1DF1E}]]+",
    "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+",
    "\\s+$",
    CJK_HANGUL,
    NULL};
static const char *const kimi[] = {"\\p{Han}+|[^\\r\\n\\p{L}\\p{N}]?" HAN_UPPER "*" HAN_LOWER "+" CONTRACTIONS "?|"
                                   "[^\\r\\n\\p{L}\\p{N}]?" HAN_UPPER "+" HAN_LOWER "*" CONTRACTIONS "?|"
                                   "\\p{N}{1,3}|" SIGNS "|" SPACES,
                                   NULL};
/* Digits by threes from the right, then scripts that are written without spaces. */
static const char *const afmoe[] = {
    "\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))",
    "[\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{F900}-\\x{FAFF}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}"
    "\\x{FF65}-\\x{FF9F}\\x{2F00}-\\x{2FDF}\\x{E40}-\\x{E7F}\\x{E80}-\\x{EFF}\\x{1780}-\\x{17FF}\\x{1000}-\\x{109F}"
    "\\x{AA60}-\\x{AA7F}\\x{A9E0}-\\x{A9FF}\\x{AC00}-\\x{D7AF}\\x{1100}-\\x{11FF}]+",
    DEEPSEEK3, NULL};
static const char *const youtu[] = {
    "[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+|[\\x{FF01}\\x{2026}\\x{201C}\\x{201D}\\x{2018}\\x{2019}\\x{2014}"
    "\\x{FF1A}\\x{FF1B}\\x{FF0C}\\x{3001}-\\x{303F}\\x{FE30}-\\x{FE4F}]+|[\\x{3105}-\\x{312F}]+|" CJK,
    UPPER "*" LOWER "+" CONTRACTIONS "?|" UPPER "+" LOWER "*" CONTRACTIONS "?|\\p{N}|" CASED_SIGNS, NULL};
static const char *const falcon[] = {"[0-9][0-9][0-9]", NULL};

static const struct pre_row rows[] = {
    {{"gpt-2", "phi-2", "gigachat", "mellum", "a.x-4.0", "exaone4", "granite-docling", "trillion", "jais", "jina-v2-es",
      "jina-v2-de", "jina-v1-en", "jina-v2-code", "roberta-bpe"},
     NULL,
     NULL,
     BYTES_ALONE,
     false,
     false},
    {{"olmo", "mpt", "modern-bert"}, "NFC", NULL, BYTES_ALONE, false, false},
    {{"starcoder", "refact", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"},
     NULL,
     NULL,
     DIGITS_BYTES,
     false,
     false},
    {{"command-r"}, "NFC", NULL, DIGITS_BYTES, false, false},
    {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
     NULL,
     llama3,
     SPLIT_BYTES,
     true,
     true},
    {{"smaug-bpe", "dbrx", "glm4", "chatglm-bpe"}, NULL, llama3, SPLIT_BYTES, false, false},
    {{"qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan", "grok-2", "kormo", "f2llmv2", "solar-open"},
     "NFC",
     qwen2,
     SPLIT_BYTES,
     false,
     false},
    {{"qwen35"}, "NFC", qwen35, SPLIT_BYTES, false, false},
    {{"tekken"}, NULL, tekken, SPLIT_BYTES, true, true},
    {{"chameleon"}, NULL, chameleon, SPLIT_BYTES, false, true},
    {{"kimi-k2"}, NULL, kimi, SPLIT_BYTES, false, false},
    {{"afmoe"}, NULL, afmoe, SPLIT_BYTES, false, false},
    {{"youtu"}, NULL, youtu, SPLIT_BYTES, false, false},
    {{"deepseek-llm"}, NULL, deepseek_llm, SPLIT_DIGITS_BYTES, false, false},
    {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, NULL, o200k, SPLIT_BYTES, false, false},
    {{"granite-embed-multi-97m"}, NULL, o200k, SPLIT_BYTES, true, false},
    {{"tiny_aya", "cohere2moe"}, NULL, grouped_o200k, SPLIT_BYTES, false, false},
    {{"deepseek-v3", "hunyuan-dense", "joyai-llm"}, NULL, deepseek3, SPLIT_BYTES, false, false},
    {{"deepseek-coder"}, NULL, deepseek_coder, SPLIT_DIGITS_BYTES, false, false},
    {{"falcon"}, NULL, falcon, FALCON_BYTES, false, false},
    {{"bloom", "gpt3-finnish", "poro-chat"}, NULL, bloom, SPLIT_BYTES, false, false},
    {{"viking"}, NULL, bloom, SPLIT_DIGITS_BYTES, false, false},
    {{"minicpm5"}, NULL, minicpm5, SPLIT_BYTES, true, false},
    {{"seed-coder"}, NULL, seed, SPLIT_BYTES, false, false},
    {{"bailingmoe", "bailingmoe2", "llada-moe"}, NULL, bailing, SPLIT_BYTES, false, false},
    {{"superbpe"}, NULL, superbpe, SPLIT_BYTES, false, false},
    {{"laguna"}, NULL, laguna, SPLIT_BYTES, false, false},
    {{"exaone-moe"}, NULL, exaone_moe, SPLIT_BYTES, false, false},
    {{"jais-2"}, NULL, jais2, SPLIT_BYTES, false, false},
};

const struct pre_row *pre_row_find(const char *name, bool *ret_known)
{
    *ret_known = true;
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
        for (const char *const *known = rows[row].names; *known != NULL; known++)
            if (strcmp(*known, name) == 0)
                return &rows[row];
    *ret_known = false;
    return &rows[0];
}

static const char bytes[] = "{'type': 'ByteLevel', 'add_prefix_space': false, 'trim_offsets': true, 'use_regex': %b}";
static const char digits[] = "{'type': 'Digits', 'individual_digits': %b}";

/* Writes the steps of a row that has several. */
static void put_steps(const struct pre_row *row, struct json_writer *writer)
{
    bool is_falcon = row->form == FALCON_BYTES;
    if (is_falcon) {
        json_put_template(writer, "{'type': 'Punctuation', 'behavior': 'Contiguous'}");
        json_put_template(writer, bytes, true);
        json_put_template(writer, digits, false);
    }
    for (const char *const *regex = row->splits; regex != NULL && *regex != NULL; regex++)
        json_put_template(
            writer, "{'type': 'Split', 'pattern': {'Regex': %s}, 'behavior': 'Isolated', 'invert': false}", *regex);
    if (row->form == DIGITS_BYTES || row->form == SPLIT_DIGITS_BYTES)
        json_put_template(writer, digits, true);
    if (!is_falcon)
        json_put_template(writer, bytes, row->form == DIGITS_BYTES);
}

void rebuild_pre_tokenizer(const struct pre_row *row, struct json_writer *writer)
{
    json_put_key(writer, "pre_tokenizer", strlen("pre_tokenizer"));
    if (row->form == BYTES_ALONE) {
        json_put_template(writer, bytes, true);
        return;
    }
    json_put_template(writer, "{'type': 'Sequence', 'pretokenizers': [");
    put_steps(row, writer);
    json_put_template(writer, "]}");
}

/* tokenizer.json of byte-level BPE. */

/* Added tokens, found before texts are split. They are not in the model's vocabulary unless it has them itself. */
struct outer_tokens {
    struct text_index index;
    bool *wanted; /* by id: a merge makes or takes the token, so the model needs it too */
    uint64_t first;
};

static bool is_inner(const struct stored_vocab *vocab, const struct outer_tokens *outer, uint64_t id)
{
    return id < outer->first || !token_is_added(&vocab->tokens[id]) || outer->wanted[id];
}

static void find_outer(const struct stored_vocab *vocab, struct outer_tokens *outer)
{
    *outer = (struct outer_tokens){.first = vocab->n_tokens};
    outer->wanted = arena_alloc(vocab->arena, vocab->n_tokens + 1);
    while (outer->first > 0 && token_is_added(&vocab->tokens[outer->first - 1]))
        outer->first--;
    for (uint64_t i = outer->first; i < vocab->n_tokens; i++)
        text_index_add(&outer->index, vocab->tokens[i].text, vocab->tokens[i].length, i);
}

static void want(struct outer_tokens *outer, const char *text, size_t length)
{
    size_t id;
    if (text_index_find(&outer->index, text, length, &id))
        outer->wanted[id] = true;
}

struct parted {
    const char *left, *right;
    size_t left_length, right_length;
};

static bool part_merge(const struct gguf_array *merges, uint64_t index, struct parted *ret_parted, struct error *error)
{
    size_t length;
    const char *text = gguf_array_string(merges, index, &length);
    const char *space = text != NULL && length > 1 ? memchr(text + 1, ' ', length - 1) : NULL;
    if (space == NULL || space + 1 == text + length)
        return error_set(error, "tokenizer.ggml.merges: number %" PRIu64 " is not two tokens", index);
    *ret_parted = (struct parted){text, space + 1, (size_t)(space - text), length - (size_t)(space + 1 - text)};
    return true;
}

static bool want_merged(const struct stored_vocab *vocab, const struct gguf_array *merges, struct outer_tokens *outer,
                        struct error *error)
{
    struct buffer made = {0};
    bool good = true;
    for (uint64_t i = 0; good && i < merges->count; i++) {
        struct parted parted = {0};
        good = part_merge(merges, i, &parted, error);
        if (!good || outer->first == vocab->n_tokens)
            continue;
        made.length = 0;
        buffer_append(&made, parted.left, parted.left_length);
        buffer_append(&made, parted.right, parted.right_length);
        want(outer, parted.left, parted.left_length);
        want(outer, parted.right, parted.right_length);
        want(outer, (const char *)made.bytes, made.length);
    }
    buffer_free(&made);
    return good;
}

static bool write_array(const struct gguf_array *merges, struct json_writer *writer, struct error *error)
{
    json_begin_array(writer, "merges");
    for (uint64_t i = 0; i < merges->count; i++) {
        struct parted parted = {0};
        if (!part_merge(merges, i, &parted, error))
            return false;
        json_put_template(writer, "[%t, %t]", parted.left, parted.left_length, parted.right, parted.right_length);
    }
    json_end(writer);
    return true;
}

/* Gets the merges; none if the key is missing. */
static bool get_merges(const struct stored_vocab *vocab, struct gguf_array *ret_merges, struct error *error)
{
    *ret_merges = (struct gguf_array){.type = GGUF_STRING};
    return gguf_kvs_find(vocab->kvs, "tokenizer.ggml.merges") == NULL ||
           gguf_get_array(vocab->kvs, "tokenizer.ggml.merges", vocab->arena, ret_merges, error);
}

bool rebuild_merges(const struct stored_vocab *vocab, struct json_writer *writer, struct error *error)
{
    struct gguf_array merges;
    return get_merges(vocab, &merges, error) && write_array(&merges, writer, error);
}

static bool is_one_character(const struct token *token)
{
    return token->length > 0 && text_character(token->text, token->length) == token->length;
}

/* Finds the tokens that merges make by joining two. */
static bool find_made(const struct text_index *ids, const struct gguf_array *merges, bool *made, struct error *error)
{
    struct buffer text = {0};
    bool good = true;
    for (uint64_t i = 0; good && i < merges->count; i++) {
        struct parted parted = {0};
        size_t id;
        good = part_merge(merges, i, &parted, error);
        text.length = 0;
        buffer_append(&text, parted.left, good ? parted.left_length : 0);
        buffer_append(&text, parted.right, good ? parted.right_length : 0);
        if (good && text_index_find(ids, (const char *)text.bytes, text.length, &id))
            made[id] = true;
    }
    buffer_free(&text);
    return good;
}

bool rebuild_find_added(struct stored_vocab *vocab, struct error *error)
{
    struct gguf_array merges;
    struct text_index ids = {0};
    bool *made = arena_alloc(vocab->arena, vocab->n_tokens + 1);
    if (!get_merges(vocab, &merges, error))
        return false;
    for (uint64_t i = 0; i < vocab->n_tokens; i++)
        if (vocab->tokens[i].type == TOKEN_NORMAL)
            text_index_set(&ids, vocab->tokens[i].text, vocab->tokens[i].length, i);
    bool found = find_made(&ids, &merges, made, error);
    for (uint64_t i = 0; i < vocab->n_tokens; i++) {
        struct token *token = &vocab->tokens[i];
        if (token->type == TOKEN_NORMAL && !made[i] && !is_one_character(token))
            token->type = TOKEN_USER_DEFINED;
    }
    text_index_free(&ids);
    return found;
}

static void put_vocab(const struct stored_vocab *vocab, const struct outer_tokens *outer, struct json_writer *writer)
{
    for (uint64_t i = 0; i < vocab->n_tokens; i++)
        if (is_inner(vocab, outer, i))
            rebuild_put_token(vocab, i, writer);
}

void rebuild_bpe_begin_model(const struct pre_row *row, struct json_writer *writer)
{
    json_put_template(writer,
                      "'model': {'type': 'BPE', 'dropout': null, 'unk_token': null, 'continuing_subword_prefix': null,"
                      " 'end_of_word_suffix': null, 'fuse_unk': false, 'byte_fallback': false, 'ignore_merges': %b",
                      row->ignores_merges);
}

/* Writes the object of tokens that the merges refer to. */
static bool put_tokens(const struct stored_vocab *vocab, const struct gguf_array *merges, const char *key,
                       struct json_writer *writer, struct error *error)
{
    struct outer_tokens outer;
    find_outer(vocab, &outer);
    bool good = want_merged(vocab, merges, &outer, error);
    json_begin_object(writer, key);
    put_vocab(vocab, &outer, writer);
    json_end(writer);
    text_index_free(&outer.index);
    return good;
}

static bool write_model(const struct stored_vocab *vocab, const struct pre_row *row, struct json_writer *writer,
                        struct error *error)
{
    struct gguf_array merges;
    if (!get_merges(vocab, &merges, error))
        return false;
    rebuild_bpe_begin_model(row, writer);
    if (!put_tokens(vocab, &merges, "vocab", writer, error) || !write_array(&merges, writer, error))
        return false;
    json_end(writer);
    return true;
}

static void write_post_processor(const struct stored_vocab *vocab, const struct pre_row *row,
                                 struct json_writer *writer)
{
    struct template template;
    bool has_template = rebuild_usual_template(vocab, row->adds_bos, &template);
    json_put_template(writer,
                      has_template ? "'post_processor': {'type': 'Sequence', 'processors': [" : "'post_processor': ");
    json_put_template(writer,
                      "{'type': 'ByteLevel', 'add_prefix_space': true, 'trim_offsets': false, 'use_regex': true}");
    if (has_template) {
        rebuild_template(vocab, &template, NULL, writer);
        json_put_template(writer, "]}");
    }
}

void rebuild_bpe_steps(const struct stored_vocab *vocab, const struct pre_row *row, struct json_writer *writer)
{
    if (row->normalizer != NULL)
        json_put_template(writer, "'normalizer': {'type': %s}", row->normalizer);
    else
        json_put_null(writer, "normalizer");
    rebuild_pre_tokenizer(row, writer);
    write_post_processor(vocab, row, writer);
    json_put_template(writer, "'decoder': {'type': 'ByteLevel', 'add_prefix_space': true, 'trim_offsets': true,"
                              " 'use_regex': true}");
}

bool rebuild_bpe_json(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_UTF8};
    bool known;
    const struct pre_row *row = pre_row_find(vocab->pre, &known);
    rebuild_begin(vocab, &writer);
    rebuild_bpe_steps(vocab, row, &writer);
    if (!write_model(vocab, row, &writer, error))
        return false;
    json_end(&writer);
    return true;
}

bool rebuild_bpe_vocab(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_UTF8, .compact = true};
    struct gguf_array merges;
    return get_merges(vocab, &merges, error) && put_tokens(vocab, &merges, NULL, &writer, error);
}

bool rebuild_bpe_merges(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    struct gguf_array merges;
    if (!get_merges(vocab, &merges, error))
        return false;
    buffer_append_text(out, "#version: 0.2\n");
    for (uint64_t i = 0; i < merges.count; i++) {
        struct parted parted = {0};
        if (!part_merge(&merges, i, &parted, error))
            return false;
        buffer_append(out, parted.left, parted.left_length);
        buffer_append_text(out, " ");
        buffer_append(out, parted.right, parted.right_length);
        buffer_append_text(out, "\n");
    }
    return true;
}
