/* Vocabularies of ranked tokens: tiktoken files, lines of a token in base64 and its rank. tokenizer.model of Llama 3,
 * tiktoken.model of Kimi, hy.tiktoken of Hunyuan.
 *
 * Merges are not stored: they follow from the ranks, in two ways. Finding those of a token of n bytes takes n * n
 * steps, and their texts as many bytes, so that a file is refused whose tokens ask for more than TIKTOKEN_WORK times
 * its size (vocabularies in use ask for 3 to 4); of files below 64 KiB, for more than what those may. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

enum {
    TIKTOKEN_MAX_BYTES = 1024, /* of a token */
    TIKTOKEN_WORK = 16,        /* the sum of the squares of the tokens' lengths, for each byte of the file */
};

struct tiktoken;

/* Which rank a line's token has: the one it says, which must be its place among the lines; or its place among those
 * that are not there already, whatever it says. */
enum tiktoken_ranks { TIKTOKEN_RANKS_SAID, TIKTOKEN_RANKS_COUNTED };

/* NULL, without an error, where the text is of another kind; NULL with one where it is damaged: *ret_damaged. */
struct tiktoken *tiktoken_parse(const char *text, size_t length, enum tiktoken_ranks ranks, bool *ret_damaged,
                                struct error *error);
void tiktoken_free(struct tiktoken *tiktoken); /* NULL is allowed */
size_t tiktoken_count(const struct tiktoken *tiktoken);

/* Appends the token of a rank, in the alphabet of byte-level tokenizers. */
void tiktoken_append(const struct tiktoken *tiktoken, uint32_t rank, struct buffer *out);

/* Appends the merge that makes a token, "LEFT RIGHT": the two parts that byte pair encoding makes of it with the tokens
 * that come before it. False where it makes more, or one. A byte that is no token is a part like any other. */
bool tiktoken_append_merge(const struct tiktoken *tiktoken, uint32_t rank, struct buffer *out);

/* All pairs of tokens that a token is made of, by the rank of the left one and then of the right one; returns how many.
 */
struct tiktoken_merge {
    uint32_t left, right;
};
size_t tiktoken_merges(const struct tiktoken *tiktoken, uint32_t rank,
                       struct tiktoken_merge merges[TIKTOKEN_MAX_BYTES]);
