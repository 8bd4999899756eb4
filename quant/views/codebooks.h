/* Codebooks: each code stands for a vector, and the vectors of several books are added. unpack.h states the rules of
 * these views. */
#pragma once

#include "quant/views/view.h"

enum { CODEBOOKS_MAX = 256, CODEBOOKS_MAX_VECTORS = 1 << 16, CODEBOOKS_MAX_ELEMENTS = 1 << 22 };

/* Returns F32 [a, b, g * h] from codes [a, b, books] of one or two bytes and books [books, vectors, g, h], which can be
 * decoded: the sum of the books' vectors that the codes select, in the order of the books. A code counts modulo the
 * number of vectors of a book, a power of two. Each read reads the books again. */
const struct view *view_codebooks(struct arena *arena, const struct view *codes, const struct view *books);
