/* Weights multiplied by a Hadamard matrix, group by group: quantizers rotate weights so before they round them, and
 * the same matrix turns the weights back.
 *
 * Both kinds of matrix are symmetric and, divided by the root of their size, orthogonal: each is its own inverse. Sums
 * are in F64, divided there, and rounded once to F32. A range is computed from the whole groups that it touches. As in
 * view.h, arguments are the program's own and are asserted. */
#pragma once

#include "quant/views/view.h"

enum { HADAMARD_MAX_SIZE = 65536 };

enum hadamard {
    HADAMARD_SYLVESTER, /* powers of [[1, 1], [1, -1]]: sizes are powers of 2. Source: scipy.linalg.hadamard */
    HADAMARD_REGULAR    /* powers of a matrix of 4 with equal sums of rows: sizes are powers of 4. Source:
                           _build_hadamard of comfy_kitchen */
};

/* Reports whether a matrix of this kind and size exists, and is at most HADAMARD_MAX_SIZE. */
bool hadamard_has_size(enum hadamard kind, uint64_t size);

/* Returns the view, which has a decoder, in F32 with each group of `size` elements of a row multiplied by the matrix.
 * Rows are whole groups. */
const struct view *view_hadamard(struct arena *arena, const struct view *view, enum hadamard kind, uint64_t size);
