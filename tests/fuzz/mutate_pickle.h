/* A mutator of pickles: by opcodes with their arguments, and by bytes. */
#pragma once

#include "formats/torch/pickle_machine.h"

#include "tests/fuzz/mutate_pieces.h"

/* Returns the length of an opcode's argument; more than `left` if it does not end. */
static inline size_t argument_length(enum argument_kind kind, const uint8_t *bytes, size_t left)
{
    static const uint8_t fixed[] = {[U8] = 1, [U16] = 2, [I32] = 4, [U32] = 4, [U64] = 8, [F64] = 8},
                         counts[] = {[COUNTED_8] = 1, [COUNTED_32] = 4, [COUNTED_I32] = 4, [COUNTED_64] = 8};
    const uint8_t *line = kind == LINE || kind == INDEX || kind == TWO_LINES ? memchr(bytes, '\n', left) : NULL;
    uint64_t count = 0;
    switch (kind) {
    case NO_ARGUMENT:
        return 0;
    case TWO_LINES:
        line = line != NULL ? memchr(line + 1, '\n', left - (size_t)(line + 1 - bytes)) : NULL;
        return line != NULL ? (size_t)(line - bytes) + 1 : left + 1;
    case LINE:
    case INDEX:
        return line != NULL ? (size_t)(line - bytes) + 1 : left + 1;
    case COUNTED_8:
    case COUNTED_32:
    case COUNTED_I32:
    case COUNTED_64:
        if (left < counts[kind])
            return left + 1;
        memcpy(&count, bytes, counts[kind]);
        return count <= left - counts[kind] ? counts[kind] + (size_t)count : left + 1;
    default:
        return fixed[kind];
    }
}

/* Splits what is opcodes. */
static inline void split_pickle(const uint8_t *data, size_t size, struct pieces *pieces)
{
    size_t at = 0;
    *pieces = (struct pieces){0};
    while (pieces->n < MOST_PIECES && at < size && opcodes[data[at]].run != NULL) {
        size_t length = argument_length(opcodes[data[at]].argument, data + at + 1, size - at - 1);
        if (length > size - at - 1)
            break;
        pieces->at[pieces->n++] = at;
        at += 1 + length;
    }
    pieces->at[pieces->n] = at;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct pieces pieces;
    if (choose(&seed, 3) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    for (size_t i = choose(&seed, 4) + 1; i > 0; i--) {
        split_pickle(data, size, &pieces);
        size = edit_pieces(data, size, max_size, &pieces, (enum edit)choose(&seed, EDITS), &seed);
    }
    return size;
}
