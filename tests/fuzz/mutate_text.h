/* A mutator of texts: by lines, by words, by the members of what is in brackets, and by bytes. */
#pragma once

#include "tests/fuzz/mutate_pieces.h"

#include <ctype.h>
#include <stdbool.h>

enum split { BY_LINES, BY_WORDS, BY_MEMBERS, SPLITS };

static inline bool is_of_word(uint8_t c)
{
    return isalnum(c) || c == '_' || c == '.' || c == '-' || c == '+';
}

/* Returns the end of the word, the string or the single byte at `at`. */
static inline size_t end_of_word(const uint8_t *data, size_t size, size_t at)
{
    size_t end = at + 1;
    if (data[at] == '"') {
        while (end < size && data[end] != '"' && data[end] != '\n')
            end += 1 + (data[end] == '\\');
        return end < size ? end + 1 : size;
    }
    while (is_of_word(data[at]) && end < size && is_of_word(data[end]))
        end++;
    return end;
}

static inline void add_piece(struct pieces *pieces, size_t end)
{
    if (pieces->n < MOST_PIECES && end > pieces->at[pieces->n])
        pieces->at[++pieces->n] = end;
}

static inline void split_lines(const uint8_t *data, size_t size, struct pieces *pieces)
{
    for (size_t i = 0; i < size; i++)
        if (data[i] == '\n' || i + 1 == size)
            add_piece(pieces, i + 1);
}

/* Begins somewhere, for texts of more words than pieces. */
static inline void split_words(const uint8_t *data, size_t size, unsigned *seed, struct pieces *pieces)
{
    size_t at = choose(seed, 2) == 0 ? 0 : choose(seed, size);
    pieces->at[0] = at;
    while (at < size && pieces->n < MOST_PIECES) {
        at = end_of_word(data, size, at);
        add_piece(pieces, at);
    }
}

/* Splits what is in one pair of brackets after each comma. */
static inline void split_members(const uint8_t *data, size_t size, unsigned *seed, struct pieces *pieces)
{
    size_t at = choose(seed, size), depth = 0;
    while (at < size && data[at] != '[' && data[at] != '{')
        at++;
    if (at++ == size)
        return;
    for (pieces->at[0] = at; at < size; at = end_of_word(data, size, at)) {
        bool is_end = data[at] == ']' || data[at] == '}';
        depth += data[at] == '[' || data[at] == '{';
        if (is_end && depth == 0)
            break;
        depth -= is_end;
        if (data[at] == ',' && depth == 0)
            add_piece(pieces, at + 1);
    }
    add_piece(pieces, at < size ? at : size);
}

static inline size_t put_special(uint8_t *data, size_t size, size_t max_size, const struct pieces *pieces,
                                 unsigned *seed)
{
    static const char *const specials[] = {
        "0",    "1",    "-1",   "2",     "3",    "4",    "8",     "16",  "32",  "64",      "128", "4096", "4294967296",
        "1e99", "0.5",  "null", "false", "true", "\"\"", "\"a\"", "[]",  "{}",  "[1,2]",   "U8",  "I8",   "I32",
        "I64",  "BF16", "F16",  "F32",   "BOOL", "[8]",  "[8,8]", "512", "256", "F8_E4M3", "]",   "}",
    };
    if (pieces->n == 0)
        return size;
    size_t piece = choose(seed, pieces->n);
    const char *special = specials[choose(seed, sizeof specials / sizeof *specials)];
    return replace(data, size, max_size, pieces->at[piece], pieces->at[piece + 1] - pieces->at[piece],
                   (const uint8_t *)special, strlen(special));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    if (size == 0 || choose(&seed, 3) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    for (size_t i = choose(&seed, 4) + 1; i > 0 && size > 0; i--) {
        struct pieces pieces = {0};
        enum split split = (enum split)choose(&seed, SPLITS);
        if (split == BY_LINES)
            split_lines(data, size, &pieces);
        else if (split == BY_WORDS)
            split_words(data, size, &seed, &pieces);
        else
            split_members(data, size, &seed, &pieces);
        if (split == BY_WORDS && choose(&seed, 2) == 0)
            size = put_special(data, size, max_size, &pieces, &seed);
        else
            size = edit_pieces(data, size, max_size, &pieces, (enum edit)choose(&seed, EDITS), &seed);
    }
    return size;
}
