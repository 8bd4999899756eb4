/* Codebooks: each code stands for a vector, and vectors of several books are added up. As unpack.h, of which it is a
 * part of its own. */
#pragma once

#include "quant/view.h"

enum { CODEBOOKS_MAX = 256, CODEBOOKS_MAX_VECTORS = 1 << 16, CODEBOOKS_MAX_ELEMENTS = 1 << 22 };

/* F32 [a, b, g * h] from codes [a, b, books] of one or two bytes and books [books, vectors, g, h], whose values can be
 * decoded: the sum of the vectors that the codes stand for, modulo the vectors of a book, which are a power of two. The
 * first book's comes first. The books are read with each range, not kept. */
const struct view *view_codebooks(struct arena *arena, const struct view *codes, const struct view *books);
