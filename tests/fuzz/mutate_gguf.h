/* A mutator of GGUF files: by keys with their values and by tensors, whose numbers are corrected, and by bytes. */
#pragma once

#include "tests/fuzz/mutate_pieces.h"

#include <stdbool.h>

enum { HEAD = 24, N_TENSORS_AT = 8, N_KEYS_AT = 16, STRING = 8, ARRAY = 9, TYPES = 13 };

/* Reads a little-endian number of the file at *at, which it moves; returns false at the end. */
static inline bool take_number(const uint8_t *data, size_t size, size_t *at, size_t n_bytes, uint64_t *ret_number)
{
    *ret_number = 0;
    if (size - *at < n_bytes)
        return false;
    memcpy(ret_number, data + *at, n_bytes);
    *at += n_bytes;
    return true;
}

static inline bool pass(size_t size, size_t *at, uint64_t n_bytes)
{
    if (n_bytes > size - *at)
        return false;
    *at += (size_t)n_bytes;
    return true;
}

static inline bool pass_string(const uint8_t *data, size_t size, size_t *at)
{
    uint64_t length;
    return take_number(data, size, at, 8, &length) && pass(size, at, length);
}

static inline bool pass_value(const uint8_t *data, size_t size, size_t *at, uint64_t type)
{
    static const uint8_t sizes[TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    uint64_t inner, count;
    if (type == STRING)
        return pass_string(data, size, at);
    if (type != ARRAY)
        return type < TYPES && pass(size, at, sizes[type]);
    if (!take_number(data, size, at, 4, &inner) || !take_number(data, size, at, 8, &count) || inner >= TYPES ||
        inner == ARRAY || count > size)
        return false;
    for (uint64_t i = 0; i < count; i++)
        if (!pass_value(data, size, at, inner))
            return false;
    return true;
}

static inline bool pass_key(const uint8_t *data, size_t size, size_t *at)
{
    uint64_t type;
    return pass_string(data, size, at) && take_number(data, size, at, 4, &type) && pass_value(data, size, at, type);
}

static inline bool pass_tensor(const uint8_t *data, size_t size, size_t *at)
{
    enum { TYPE_AND_OFFSET = 12, MOST_RANK = 8 };
    uint64_t rank;
    return pass_string(data, size, at) && take_number(data, size, at, 4, &rank) && rank <= MOST_RANK &&
           pass(size, at, rank * 8 + TYPE_AND_OFFSET);
}

/* Finds where each key begins, or each tensor entry after the keys, up to the first that cannot be read. */
static inline void split_gguf(const uint8_t *data, size_t size, bool tensors, struct pieces *pieces)
{
    size_t at = HEAD;
    uint64_t n_keys, n_tensors;
    *pieces = (struct pieces){0};
    if (size < HEAD)
        return;
    memcpy(&n_keys, data + N_KEYS_AT, sizeof n_keys);
    memcpy(&n_tensors, data + N_TENSORS_AT, sizeof n_tensors);
    for (uint64_t i = 0; i < n_keys + (tensors ? n_tensors : 0) && pieces->n < MOST_PIECES; i++) {
        size_t begin = at;
        if (!(i < n_keys ? pass_key : pass_tensor)(data, size, &at))
            break;
        if (tensors == (i >= n_keys))
            pieces->at[pieces->n++] = begin;
        pieces->at[pieces->n] = at;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct pieces pieces;
    bool tensors = choose(&seed, 2) == 0;
    enum edit edit = (enum edit)choose(&seed, EDITS);
    split_gguf(data, size, tensors, &pieces);
    if (pieces.n == 0 || choose(&seed, 3) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    size_t edited = edit_pieces(data, size, max_size, &pieces, edit, &seed);
    uint64_t count = pieces.n - (edit == TAKE_AWAY) + (edit == REPEAT && edited != size);
    if (choose(&seed, 8) != 0)
        memcpy(data + (tensors ? N_TENSORS_AT : N_KEYS_AT), &count, sizeof count);
    return edited;
}
