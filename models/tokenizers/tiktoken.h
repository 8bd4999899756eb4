/* Vocabularies of ranked tokens: tiktoken files, with a token in base64 and its rank in each line. tokenizer.model of
 * Llama 3, tiktoken.model of Kimi, hy.tiktoken of Hunyuan.
 *
 * Merges are not stored: they follow from the ranks, in two ways. Finding a token's merges takes n * n steps for n
 * bytes, and their texts as many bytes. So a file is refused if its tokens need more than TIKTOKEN_WORK times its size
 * (published vocabularies need 3 to 4 times); a file below 64 KiB counts as 64 KiB. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

enum {
    TIKTOKEN_MAX_BYTES = 1024, /* of a token */
    TIKTOKEN_WORK = 16,        /* the sum of the squares of the tokens' lengths, for each byte of the file */
};

struct tiktoken;

/* The rank of a line's token: the number in the line, which must be its place among the lines (SAID); or its place
 * among the distinct tokens, whatever the number (COUNTED). */
enum tiktoken_ranks { TIKTOKEN_RANKS_SAID, TIKTOKEN_RANKS_COUNTED };

/* Parses a file, for tiktoken_free(). Returns NULL without an error for another format; NULL with an error, and
 * *ret_damaged, if the file is damaged or exceeds a limit. */
struct tiktoken *tiktoken_parse(const char *text, size_t length, enum tiktoken_ranks ranks, bool *ret_damaged,
                                struct error *error);
void tiktoken_free(struct tiktoken *tiktoken); /* NULL is allowed */
size_t tiktoken_count(const struct tiktoken *tiktoken);

/* Appends the token of a rank below tiktoken_count(), in the alphabet of byte-level tokenizers. */
void tiktoken_append(const struct tiktoken *tiktoken, uint32_t rank, struct buffer *out);

/* Appends the merge that makes a token, "LEFT RIGHT": the two parts that byte pair encoding with lower ranks leaves of
 * it. Returns false if one part or more than two are left. A byte that is no token is a part like any other. */
bool tiktoken_append_merge(const struct tiktoken *tiktoken, uint32_t rank, struct buffer *out);

/* Lists all pairs of tokens that make a token, by the rank of the left one and then of the right one; returns their
 * number. */
struct tiktoken_merge {
    uint32_t left, right;
};
size_t tiktoken_merges(const struct tiktoken *tiktoken, uint32_t rank,
                       struct tiktoken_merge merges[TIKTOKEN_MAX_BYTES]);
