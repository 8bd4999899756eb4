#include "models/tokenizers/tiktoken.h"

#include "base/arena.h"
#include "base/encodings.h"
#include "base/text_index.h"
#include "models/tokenizers/byte_alphabet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 1 << 22 };

struct token {
    const char *bytes;
    uint32_t length;
};

struct tiktoken {
    struct arena *arena;
    struct token *tokens; /* by rank */
    uint32_t n_tokens;
    struct text_index index; /* of ranks */
};

/* Parses a line: "base64 rank". */
static bool parse_line(struct tiktoken *tiktoken, const char *line, size_t length, enum tiktoken_ranks ranks)
{
    char rank[16];
    const char *space = memchr(line, ' ', length);
    struct token *token = &tiktoken->tokens[tiktoken->n_tokens];
    size_t token_length = space != NULL ? (size_t)(space - line) : 0, n_bytes;
    int n = snprintf(rank, sizeof rank, "%" PRIu32, tiktoken->n_tokens);
    if (space == NULL || token_length > TIKTOKEN_MAX_BYTES)
        return false;
    if (ranks == TIKTOKEN_RANKS_SAID &&
        ((size_t)n != length - token_length - 1 || memcmp(space + 1, rank, (size_t)n) != 0))
        return false;
    token->bytes = base64_decode(tiktoken->arena, line, token_length, &n_bytes);
    if (token->bytes == NULL)
        return false;
    token->length = (uint32_t)n_bytes;
    tiktoken->n_tokens++;
    return true;
}

/* Indexes the tokens. Drops tokens that repeat an earlier one; fails for such tokens if the file states the ranks. */
static bool index_tokens(struct tiktoken *tiktoken, enum tiktoken_ranks ranks, struct error *error)
{
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < tiktoken->n_tokens; i++) {
        const struct token token = tiktoken->tokens[i];
        if (text_index_add(&tiktoken->index, token.bytes, token.length, n_kept))
            tiktoken->tokens[n_kept++] = token;
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

static void append_bytes(const struct token *token, uint32_t from, uint32_t to, struct buffer *out)
{
    for (uint32_t i = from; i < to; i++) {
        char character[BYTE_CHARACTER_BYTES];
        buffer_append(out, character, byte_character((unsigned char)token->bytes[i], character));
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
static bool merge_lowest(const struct tiktoken *tiktoken, const struct token *token, uint16_t *ends, uint32_t *pairs,
                         size_t *n_parts, uint32_t most)
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
        pairs[lowest - 1] = rank_of_pair(tiktoken, token->bytes, ends, lowest - 1, most);
    if (lowest + 1 < *n_parts)
        pairs[lowest] = rank_of_pair(tiktoken, token->bytes, ends, lowest, most);
    return true;
}

bool tiktoken_append_merge(const struct tiktoken *tiktoken, uint32_t rank, struct buffer *out)
{
    const struct token *token = &tiktoken->tokens[rank];
    uint16_t ends[TIKTOKEN_MAX_BYTES];
    uint32_t pairs[TIKTOKEN_MAX_BYTES];
    size_t n_parts = token->length;
    for (size_t i = 0; i < n_parts; i++)
        ends[i] = (uint16_t)(i + 1);
    for (size_t i = 0; i + 1 < n_parts; i++)
        pairs[i] = rank_of_pair(tiktoken, token->bytes, ends, i, rank);
    while (n_parts > 2 && merge_lowest(tiktoken, token, ends, pairs, &n_parts, rank))
        continue;
    if (n_parts != 2)
        return false;
    append_bytes(token, 0, ends[0], out);
    buffer_append_text(out, " ");
    append_bytes(token, ends[0], token->length, out);
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
    const struct token *token = &tiktoken->tokens[rank];
    size_t n_merges = 0;
    for (uint32_t cut = 1; cut < token->length; cut++) {
        struct tiktoken_merge *merge = &merges[n_merges];
        n_merges += find_rank(tiktoken, token->bytes, cut, &merge->left) &&
                    find_rank(tiktoken, token->bytes + cut, token->length - cut, &merge->right);
    }
    qsort(merges, n_merges, sizeof *merges, compare_merges);
    return n_merges;
}
