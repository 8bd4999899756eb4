/* Unpacking: views over several others, of which packed weights are put together (models/packings/).
 *
 * Formats differ in where bits lie and in what they are multiplied with, and in nothing else: words are cut into
 * fields, fields are looked up in a table or taken as numbers, and numbers are combined with scales and zero points
 * that several of them share. Whatever order a format has besides is a rearrangement of words or of fields (view.h).
 *
 * As in view.h shapes are the program's own and are asserted, any range is computed from just what it depends on, and
 * views live in the arena. Arithmetic is in F32, every operation rounded. */
#pragma once

#include "quant/view.h"

/* The same bytes as units of another size: the last dimension grows or shrinks. A row holds whole units of both. */
const struct view *view_reinterpret(struct arena *arena, const struct view *view, const struct dtype *dtype);

enum { FIELDS_MAX = 32, FIELDS_MAX_BYTES = 8 };

/* How words are cut. A word is `word_units` units of the view next to each other, as one little-endian number of at
 * most FIELDS_MAX_BYTES bytes; field i of it is (word >> shifts[i]) & (2^bits - 1). */
struct fields {
    uint8_t word_units, n_fields, bits; /* at most 8 bits */
    uint8_t shifts[FIELDS_MAX];
};

/* Fields from the least significant bits on, as many as a word of `word_bits` bits has; what is left of it is not used.
 */
struct fields fields_of_words(unsigned word_bits, unsigned bits);

/* Fields from the least significant bits on in a stream of bytes that has no words: eight of them are `bits` bytes. */
struct fields fields_of_stream(unsigned bits);

/* The fields as U8, one after the other along the last axis: a row of n words is n * n_fields elements. */
const struct view *view_fields(struct arena *arena, const struct view *words, const struct fields *fields);

/* F32: for each element of `codes`, which is U8, that element of the table. A table has 2^bits elements, 256 at most,
 * and no code is beyond it. It is read with each range, not kept. */
const struct view *view_lookup(struct arena *arena, const struct view *codes, const struct view *table);

enum combination { ADD, SUBTRACT, MULTIPLY, DIVIDE };

/* How the elements of one view share those of another. */
struct sharing {
    uint64_t rows, columns; /* of a block that has one element of the other view; at least 1 */

    /* Where not NULL: of column c it is column groups[c] of the other view, instead of c / columns; a vector of I32 or
     * I64. A negative one counts from the end, and one that is out of range is an error of the ranges it is in. */
    const struct view *groups;
};

/* The most columns that a view shared by groups has. */
enum { SHARING_MAX_GROUPS = 16384 };

/* F32: left op right, element by element, where the last two axes of `right` are those of `left` in blocks, rounded up,
 * and all before are the same, or absent. A vector is a row. Both have values that can be decoded. */
const struct view *view_combine(struct arena *arena, const struct view *left, enum combination op,
                                const struct view *right, const struct sharing *sharing);

/* (left - zero) op right, the same way: of codes that all have the same zero. */
const struct view *view_combine_centered(struct arena *arena, const struct view *left, float zero, enum combination op,
                                         const struct view *right, const struct sharing *sharing);

/* left op right with one element for all. */
const struct view *view_combine_one(struct arena *arena, const struct view *left, enum combination op,
                                    const struct view *right);
const struct view *view_combine_number(struct arena *arena, const struct view *left, enum combination op, float number);
