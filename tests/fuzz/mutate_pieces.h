/* Changes of inputs by their structure: whole pieces are taken away, repeated, exchanged, or changed inside.
 *
 * For libFuzzer's custom mutators. Choices follow from the seed alone. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

enum { MOST_PIECES = 512 };

/* The pieces that an input consists of. Each piece begins where the piece before it ends. */
struct pieces {
    size_t at[MOST_PIECES + 1]; /* the last: where they end */
    size_t n;
};

/* Returns a number below `n`, which is not 0. */
static inline size_t choose(unsigned *seed, size_t n)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 8) % n;
}

/* Replaces [at, at + length) by other bytes, if there is room. Returns the new size. */
static inline size_t replace(uint8_t *data, size_t size, size_t max_size, size_t at, size_t length, const uint8_t *by,
                             size_t by_length)
{
    if (size - length + by_length > max_size)
        return size;
    memmove(data + at + by_length, data + at + length, size - at - length);
    if (by_length > 0)
        memcpy(data + at, by, by_length);
    return size - length + by_length;
}

/* Puts one piece where another begins, instead of `replaced` bytes. */
static inline size_t put_piece(uint8_t *data, size_t size, size_t max_size, const struct pieces *pieces, size_t piece,
                               size_t to, size_t replaced)
{
    size_t length = pieces->at[piece + 1] - pieces->at[piece];
    uint8_t *copy = malloc(length + 1);
    memcpy(copy, data + pieces->at[piece], length);
    size = replace(data, size, max_size, pieces->at[to], replaced, copy, length);
    free(copy);
    return size;
}

enum edit { TAKE_AWAY, REPEAT, EXCHANGE, EDITS };

/* Takes a piece away, repeats it elsewhere, or puts it in the place of another. Returns the new size. */
static inline size_t edit_pieces(uint8_t *data, size_t size, size_t max_size, const struct pieces *pieces,
                                 enum edit edit, unsigned *seed)
{
    if (pieces->n == 0)
        return size;
    size_t piece = choose(seed, pieces->n), other = choose(seed, pieces->n);
    switch (edit) {
    case TAKE_AWAY:
        return replace(data, size, max_size, pieces->at[piece], pieces->at[piece + 1] - pieces->at[piece], NULL, 0);
    case REPEAT:
        return put_piece(data, size, max_size, pieces, piece, other, 0);
    default:
        return put_piece(data, size, max_size, pieces, piece, other, pieces->at[other + 1] - pieces->at[other]);
    }
}
