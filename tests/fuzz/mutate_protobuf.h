/* A mutator of protobuf messages: by fields at any depth, whose lengths are corrected above, and by bytes. */
#pragma once

#include "tests/fuzz/mutate_pieces.h"

#include <stdbool.h>

enum { LENGTH_BYTES = 10, DEEPEST = 8 };

/* Reads a number at *at, which it moves; returns false if it does not end. */
static inline bool take_varint(const uint8_t *data, size_t size, size_t *at, uint64_t *ret_number)
{
    *ret_number = 0;
    for (unsigned i = 0; i < LENGTH_BYTES && *at < size; i++) {
        uint8_t byte = data[(*at)++];
        *ret_number |= (uint64_t)(byte & 0x7f) << 7 * i;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Finds the end of the field at `at`, and where its contents begin if it has a length; 0: it is no field. */
static inline size_t field_end(const uint8_t *data, size_t size, size_t at, size_t *ret_contents)
{
    enum { VARINT, FIXED_64, LENGTH, FIXED_32 = 5 };
    uint64_t key, number;
    *ret_contents = 0;
    if (!take_varint(data, size, &at, &key) || key >> 3 == 0)
        return 0;
    switch (key & 7) {
    case VARINT:
        return take_varint(data, size, &at, &number) ? at : 0;
    case FIXED_64:
        return size - at >= 8 ? at + 8 : 0;
    case FIXED_32:
        return size - at >= 4 ? at + 4 : 0;
    case LENGTH:
        *ret_contents = take_varint(data, size, &at, &number) && number <= size - at ? at : 0;
        return *ret_contents != 0 ? at + (size_t)number : 0;
    default:
        return 0;
    }
}

/* Splits a message into fields; returns false if it is none. */
static inline bool split_message(const uint8_t *data, size_t size, struct pieces *pieces)
{
    size_t at = 0, contents;
    *pieces = (struct pieces){0};
    while (pieces->n < MOST_PIECES && at < size) {
        size_t end = field_end(data, size, at, &contents);
        if (end == 0)
            return false;
        pieces->at[pieces->n++] = at;
        at = end;
    }
    pieces->at[pieces->n] = at;
    return pieces->n > 0;
}

/* Puts other contents into a field that has a length. Returns the new size of the message. */
static inline size_t put_contents(uint8_t *data, size_t size, size_t max_size, size_t at, size_t end,
                                  const uint8_t *contents, size_t length)
{
    uint8_t *field = malloc(2 * LENGTH_BYTES + length);
    uint64_t key, left = length;
    size_t key_end = at;
    take_varint(data, size, &key_end, &key);
    size_t n = key_end - at;
    memcpy(field, data + at, n);
    for (; left >= 0x80; left >>= 7)
        field[n++] = (uint8_t)left | 0x80;
    field[n++] = (uint8_t)left;
    memcpy(field + n, contents, length);
    size = replace(data, size, max_size, at, end - at, field, n + length);
    free(field);
    return size;
}

/* Changes the fields of a message, or the contents of one: a message itself, or other bytes. */
static inline size_t mutate_message(uint8_t *data, size_t size, size_t max_size, unsigned depth, unsigned *seed)
{
    struct pieces pieces;
    size_t contents = 0;
    if (!split_message(data, size, &pieces))
        return LLVMFuzzerMutate(data, size, max_size);
    size_t piece = choose(seed, pieces.n), at = pieces.at[piece], end = field_end(data, size, at, &contents);
    if (contents == 0 || depth == DEEPEST || choose(seed, 4) == 0)
        return edit_pieces(data, size, max_size, &pieces, (enum edit)choose(seed, EDITS), seed);
    size_t length = end - contents, room = length + (max_size - size);
    uint8_t *copy = malloc(room + 1);
    memcpy(copy, data + contents, length);
    length = mutate_message(copy, length, room, depth + 1, seed);
    size = put_contents(data, size, max_size, at, end, copy, length);
    free(copy);
    return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    if (choose(&seed, 4) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    return mutate_message(data, size, max_size, 0, &seed);
}
