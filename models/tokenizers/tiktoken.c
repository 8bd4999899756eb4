#include "models/tokenizers/tiktoken.h"

#include "base/arena.h"
#include "base/encodings.h"
#include "base/text_index.h"
#include "models/tokenizers/byte_alphabet.h"
#include "models/tokenizers/ranked.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 1 << 22 };

struct tiktoken_token {
    const char *bytes;
    uint32_t length;
};

struct tiktoken {
    struct arena *arena;
    struct tiktoken_token *tokens; /* by rank */
    uint32_t n_tokens;
    struct text_index index; /* of ranks */
};

/* Parses a line: "base64 rank". */
static bool parse_line(struct tiktoken *tiktoken, const char *line, size_t length, enum tiktoken_ranks ranks)
{
    char rank[16];
    const char *space = memchr(line, ' ', length);
    struct tiktoken_token *tiktoken_token = &tiktoken->tokens[tiktoken->n_tokens];
    size_t token_length = space != NULL ? (size_t)(space - line) : 0, n_bytes;
    int n = snprintf(rank, sizeof rank, "%" PRIu32, tiktoken->n_tokens);
    if (space == NULL || token_length > TIKTOKEN_MAX_BYTES)
        return false;
    if (ranks == TIKTOKEN_RANKS_SAID &&
        ((size_t)n != length - token_length - 1 || memcmp(space + 1, rank, (size_t)n) != 0))
        return false;
    tiktoken_token->bytes = base64_decode(tiktoken->arena, line, token_length, &n_bytes);
    if (tiktoken_token->bytes == NULL)
        return false;
    tiktoken_token->length = (uint32_t)n_bytes;
    tiktoken->n_tokens++;
    return true;
}

/* Indexes the tokens. Drops tokens that repeat an earlier one; fails for such tokens if the file states the ranks. */
static bool index_tokens(struct tiktoken *tiktoken, enum tiktoken_ranks ranks, struct error *error)
{
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < tiktoken->n_tokens; i++) {
        const struct tiktoken_token tiktoken_token = tiktoken->tokens[i];
        if (text_index_add(&tiktoken->index, tiktoken_token.bytes, tiktoken_token.length, n_kept))
            tiktoken->tokens[n_kept++] = tiktoken_token;
        else if (ranks == TIKTOKEN_RANKS_SAID)
            return error_set(error, "a token appears twice");
    }
    tiktoken->n_tokens = n_kept;
    return true;
}

/* Reports whether finding the merges stays within the limit for a file of `length` bytes. */
static bool is_worth_splitting(const struct tiktoken *tiktoken, size_t length, struct error *error)
{
    enum { SMALL_FILE = 64 << 10 };
    uint64_t work = 0, most = TIKTOKEN_WORK * (uint64_t)(length > SMALL_FILE ? length : SMALL_FILE);
    for (uint32_t i = 0; i < tiktoken->n_tokens; i++)
        work += (uint64_t)tiktoken->tokens[i].length * tiktoken->tokens[i].length;
    return work <= most || error_set(error,
                                     "long tokens: the squares of their lengths make %" PRIu64
                                     ", more than %d for each byte of the file",
                                     work, TIKTOKEN_WORK);
}

/* Reports whether the text starts like a line of a tiktoken file. */
static bool looks_like_tiktoken(const char *text, size_t length)
{
    const char *end = memchr(text, '\n', length < 256 ? length : 256);
    return end != NULL && end - text > 2 && memcmp(end - 2, " 0", 2) == 0;
}

struct tiktoken *tiktoken_parse(const char *text, size_t length, enum tiktoken_ranks ranks, bool *ret_damaged,
                                struct error *error)
{
    *ret_damaged = false;
    if (!looks_like_tiktoken(text, length))
        return NULL;
    size_t n_lines = 1;
    for (size_t i = 0; i < length; i++)
        n_lines += text[i] == '\n';
    struct tiktoken *tiktoken = memory_alloc(sizeof *tiktoken);
    *tiktoken = (struct tiktoken){.arena = arena_new()};
    bool good = n_lines <= MAX_RANKS || error_set(error, "more than %d tokens", MAX_RANKS);
    tiktoken->tokens = arena_array(tiktoken->arena, good ? n_lines : 0, sizeof *tiktoken->tokens);
    for (size_t at = 0; good && at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t line = end != NULL ? (size_t)(end - text) - at : length - at;
        good = parse_line(tiktoken, text + at, line, ranks) ||
               error_set(error, "line %" PRIu32 " is not a token in base64 and its rank", tiktoken->n_tokens + 1);
        at += line + 1;
    }
    if (good && is_worth_splitting(tiktoken, length, error) && index_tokens(tiktoken, ranks, error))
        return tiktoken;
    *ret_damaged = true;
    tiktoken_free(tiktoken);
    return NULL;
}

void tiktoken_free(struct tiktoken *tiktoken)
{
    if (tiktoken == NULL)
        return;
    text_index_free(&tiktoken->index);
    arena_free(tiktoken->arena);
    free(tiktoken);
}

size_t tiktoken_count(const struct tiktoken *tiktoken)
{
    return tiktoken->n_tokens;
}

static bool find_rank(const struct tiktoken *tiktoken, const char *bytes, size_t length, uint32_t *ret_rank)
{
    size_t rank;
    if (!text_index_find(&tiktoken->index, bytes, length, &rank))
        return false;
    *ret_rank = (uint32_t)rank;
    return true;
}

static void append_bytes(const struct tiktoken_token *tiktoken_token, uint32_t from, uint32_t to, struct buffer *out)
{
    for (uint32_t i = from; i < to; i++) {
        char character[BYTE_CHARACTER_BYTES];
        buffer_append(out, character, byte_character((unsigned char)tiktoken_token->bytes[i], character));
    }
}

void tiktoken_append(const struct tiktoken *tiktoken, uint32_t rank, struct buffer *out)
{
    append_bytes(&tiktoken->tokens[rank], 0, tiktoken->tokens[rank].length, out);
}

/* Returns the rank of two neighbouring parts together; UINT32_MAX if they are not a token below `most`. */
static uint32_t rank_of_pair(const struct tiktoken *tiktoken, const char *bytes, const uint16_t *ends, size_t part,
                             uint32_t most)
{
    uint32_t rank, first = part == 0 ? 0 : ends[part - 1];
    bool found = find_rank(tiktoken, bytes + first, ends[part + 1] - first, &rank);
    return found && rank < most ? rank : UINT32_MAX;
}

/* Joins the pair with the lowest rank, the first of equals; returns false if no pair is a token. */
static bool merge_lowest(const struct tiktoken *tiktoken, const struct tiktoken_token *tiktoken_token, uint16_t *ends,
                         uint32_t *pairs, size_t *n_parts, uint32_t most)
{
    size_t lowest = 0, n_pairs = *n_parts - 1;
    for (size_t i = 1; i < n_pairs; i++)
        if (pairs[i] < pairs[lowest])
            lowest = i;
    if (n_pairs == 0 || pairs[lowest] == UINT32_MAX)
        return false;
    memmove(ends + lowest, ends + lowest + 1, (*n_parts - lowest - 1) * sizeof *ends);
    memmove(pairs + lowest, pairs + lowest + 1, (n_pairs - lowest - 1) * sizeof *pairs);
    --*n_parts;
    if (lowest > 0)
        pairs[lowest - 1] = rank_of_pair(tiktoken, tiktoken_token->bytes, ends, lowest - 1, most);
    if (lowest + 1 < *n_parts)
        pairs[lowest] = rank_of_pair(tiktoken, tiktoken_token->bytes, ends, lowest, most);
    return true;
}

bool tiktoken_append_merge(const struct tiktoken *tiktoken, uint32_t rank, struct buffer *out)
{
    const struct tiktoken_token *tiktoken_token = &tiktoken->tokens[rank];
    uint16_t ends[TIKTOKEN_MAX_BYTES];
    uint32_t pairs[TIKTOKEN_MAX_BYTES];
    size_t n_parts = tiktoken_token->length;
    for (size_t i = 0; i < n_parts; i++)
        ends[i] = (uint16_t)(i + 1);
    for (size_t i = 0; i + 1 < n_parts; i++)
        pairs[i] = rank_of_pair(tiktoken, tiktoken_token->bytes, ends, i, rank);
    while (n_parts > 2 && merge_lowest(tiktoken, tiktoken_token, ends, pairs, &n_parts, rank))
        continue;
    if (n_parts != 2)
        return false;
    append_bytes(tiktoken_token, 0, ends[0], out);
    buffer_append_text(out, " ");
    append_bytes(tiktoken_token, ends[0], tiktoken_token->length, out);
    return true;
}

static int compare_merges(const void *a, const void *b)
{
    const struct tiktoken_merge *x = a, *y = b;
    if (x->left != y->left)
        return x->left < y->left ? -1 : 1;
    return (x->right > y->right) - (x->right < y->right);
}

size_t tiktoken_merges(const struct tiktoken *tiktoken, uint32_t rank, struct tiktoken_merge merges[TIKTOKEN_MAX_BYTES])
{
    const struct tiktoken_token *tiktoken_token = &tiktoken->tokens[rank];
    size_t n_merges = 0;
    for (uint32_t cut = 1; cut < tiktoken_token->length; cut++) {
        struct tiktoken_merge *merge = &merges[n_merges];
        n_merges += find_rank(tiktoken, tiktoken_token->bytes, cut, &merge->left) &&
                    find_rank(tiktoken, tiktoken_token->bytes + cut, tiktoken_token->length - cut, &merge->right);
    }
    qsort(merges, n_merges, sizeof *merges, compare_merges);
    return n_merges;
}

/* "gpt2" from qwen.tiktoken: the tokenizer of the first Qwen. conversion/base.py (_set_vocab_qwen); the
 * tokenization_qwen.py of these repositories. */

static const char *const specials[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", NULL};

/* Reports whether the files name any special token. */
static bool names_specials(const struct vocab_input *input, const struct tokenizer_files *files)
{
    static const char *const types[] = {"bos", "eos", "unk", "sep", "pad", "cls", "mask"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char id[32], token[32];
        uint64_t unused;
        snprintf(id, sizeof id, "%s_token_id", types[i]);
        snprintf(token, sizeof token, "%s_token", types[i]);
        if (json_u64(json_get(hparams_raw(input->owner), id), &unused) || json_get(files->config, token) != NULL)
            return true;
    }
    return false;
}

static size_t list_ids(const struct vocab_input *input, const struct tokenizer_files *files, uint64_t first,
                       struct special_id *ids)
{
    size_t n_ids = 0;
    if (!names_specials(input, files)) {
        ids[n_ids++] = (struct special_id){"bos", first};
        ids[n_ids++] = (struct special_id){"eos", first};
    }
    ids[n_ids++] = (struct special_id){"unk", first};
    return n_ids;
}

static const struct ranked_kind kind = {.file = "qwen.tiktoken",
                                        .ranks = TIKTOKEN_RANKS_SAID,
                                        .pre = "qwen2",
                                        .n_specials = 208,
                                        .specials = specials,
                                        .list_ids = list_ids};

const struct vocab qwen_vocab = {.name = "ranked tokens of Qwen 1", .file = "qwen.tiktoken", .ranked = &kind};

/* "gpt2" from tiktoken.model, Kimi K2's tokenizer. Special tokens are those of tokenizer_config.json, and reserved
 * ones. conversion/deepseek.py, kimi_linear.py; the tokenization_kimi.py of these repositories. */

enum { RESERVED_TOKENS = 258 };

static void set_specials(struct token_list *list, uint64_t first, uint64_t count, const struct tokenizer_files *files)
{
    for (uint64_t id = first; id < first + count; id++) {
        char *text = arena_printf(list->arena, "<|reserved_token_%llu|>", (unsigned long long)id);
        token_list_set(list, id, text, strlen(text), 0, TOKEN_CONTROL);
    }
    const struct json *decoder = json_get(files->config, "added_tokens_decoder");
    for (struct json_member token = {0}; json_next_member(decoder, &token);) {
        size_t length;
        const char *text = json_string(json_get(token.value, "content"), &length);
        uint64_t id = strtoull(token.key, NULL, 10);
        if (text != NULL && id >= first && id < first + count)
            token_list_set(list, id, text, length, 0, TOKEN_CONTROL);
    }
}

static const struct ranked_kind kimi = {"tiktoken.model", TIKTOKEN_RANKS_SAID, "kimi-k2", RESERVED_TOKENS,
                                        .set_specials = set_specials};
static const struct ranked_kind kimi_linear = {"tiktoken.model", TIKTOKEN_RANKS_SAID,          "kimi-k2",
                                               RESERVED_TOKENS,  .set_specials = set_specials, .end = "[EOS]"};

const struct vocab kimi_vocab = {.name = "Kimi's ranked tokens", .file = "tiktoken.model", .ranked = &kimi};
const struct vocab kimi_linear_vocab = {
    .name = "Kimi Linear's ranked tokens", .file = "tiktoken.model", .ranked = &kimi_linear};
