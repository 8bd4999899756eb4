/* Dependencies: the stored bytes that a range of a view is computed from, named without reading any of them.
 *
 * Naming them first lets remote bytes be requested together, and awaited before computing begins. Every byte that
 * reading the range touches is named, and so may be bytes in gaps of at most DEPENDENCY_GAP between them: a transposed
 * matrix has a run of a few bytes in each row.
 *
 * What a view's first reader finds out about whole tensors (finding.h) changes what later ones need. */
#pragma once

#include "quant/views/view.h"

enum { DEPENDENCY_GAP = 64 * 1024 };

struct dependencies {
    /* Gets each range of a source: bytes [from->offset, from->offset + n_bytes). Ranges may overlap, and come in any
     * order. */
    void (*take)(void *context, const struct extent *from, uint64_t n_bytes);
    void *context;
    bool as_at_first; /* views name what their first reader needs, even if they have been read */

    /* the range added but not taken yet; initially zero */
    struct extent from;
    uint64_t n_bytes;
};

/* Adds stored bytes, joined with the pending range if at most DEPENDENCY_GAP lies between them. */
void dependencies_add(struct dependencies *to, const struct extent *from, uint64_t n_bytes);

/* Passes on the pending range. Call it once, after the last view_depends(). */
void dependencies_end(struct dependencies *to);
