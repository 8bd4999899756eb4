/* Unpacking: views that dequantize packed weights (models/packings/) from their parts.
 *
 * Formats differ only in the places of bits and the scales of numbers: views cut words into fields, look fields up in a
 * table or take them as numbers, and combine numbers with scales and zero points that several numbers share. A format
 * with another order rearranges words or fields (view.h).
 *
 * As in view.h shapes are the program's own and are asserted, any range is computed from just the parts it depends on,
 * and views live in the arena. Arithmetic is in F32, with every operation rounded. */
#pragma once

#include "quant/views/view.h"

/* Returns the same bytes as units of another dtype: the last dimension grows or shrinks, and a scalar becomes a vector.
 * A row holds whole units of both dtypes. */
const struct view *view_reinterpret(struct arena *arena, const struct view *view, const struct dtype *dtype);

enum { FIELDS_MAX = 32, FIELDS_MAX_BYTES = 8 };

/* How a word is cut into fields. A word is `word_units` units of the view next to each other, as one little-endian
 * number of at most FIELDS_MAX_BYTES bytes; field i of it is (word >> shifts[i]) & (2^bits - 1). */
struct fields {
    uint8_t word_units, n_fields, bits; /* at most 8 bits */
    uint8_t shifts[FIELDS_MAX];
};

/* Returns fields from the least significant bits on, as many as fit in a word of `word_bits` bits; other bits are
 * unused. */
struct fields fields_of_words(unsigned word_bits, unsigned bits);

/* Returns fields from the least significant bits on of a stream of bytes without words: eight fields are `bits` bytes.
 */
struct fields fields_of_stream(unsigned bits);

/* Returns the fields as U8 along the last axis: a row of n words becomes n * n_fields elements. */
const struct view *view_fields(struct arena *arena, const struct view *words, const struct fields *fields);

/* Returns the element of the table for each element of `codes` (U8), in F32. A table has 2^bits elements, at most 256,
 * more than any code. Each read reads the table again. */
const struct view *view_lookup(struct arena *arena, const struct view *codes, const struct view *table);

enum combination { ADD, SUBTRACT, MULTIPLY, DIVIDE };

/* How the elements of one view share the elements of another. */
struct sharing {
    uint64_t rows, columns; /* size of a block that shares one element; at least 1 */

    /* If not NULL, column c uses column groups[c] of the other view instead of c / columns; a vector of I32 or I64. A
     * negative group counts from the end; reading a range with a group out of range fails. */
    const struct view *groups;
};

/* The most columns of a view with groups. */
enum { SHARING_MAX_GROUPS = 16384 };

/* Returns left op right in F32, element by element. The last two dimensions of `right` are the numbers of blocks of
 * `left`, rounded up; earlier dimensions equal those of `left`, or are absent. A vector counts as a row. Both views
 * must have decoders. */
const struct view *view_combine(struct arena *arena, const struct view *left, enum combination op,
                                const struct view *right, const struct sharing *sharing);

/* Like view_combine(), for (left - zero) op right: codes with one common zero point. */
const struct view *view_combine_centered(struct arena *arena, const struct view *left, float zero, enum combination op,
                                         const struct view *right, const struct sharing *sharing);

/* Like view_combine(), with one element, or a number, for all elements of `left`. */
const struct view *view_combine_one(struct arena *arena, const struct view *left, enum combination op,
                                    const struct view *right);
const struct view *view_combine_number(struct arena *arena, const struct view *left, enum combination op, float number);

/* Codebooks: each code stands for a vector, and the vectors of several books are added. unpack.h states the rules of
 * these views. */

enum { CODEBOOKS_MAX = 256, CODEBOOKS_MAX_VECTORS = 1 << 16, CODEBOOKS_MAX_ELEMENTS = 1 << 22 };

/* Returns F32 [a, b, g * h] from codes [a, b, books] of one or two bytes and books [books, vectors, g, h], which can be
 * decoded: the sum of the books' vectors that the codes select, in the order of the books. A code counts modulo the
 * number of vectors of a book, a power of two. Each read reads the books again. */
const struct view *view_codebooks(struct arena *arena, const struct view *codes, const struct view *books);
