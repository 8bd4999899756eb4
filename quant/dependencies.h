/* Dependencies: the stored bytes that a range of a view is computed from, named without reading any of them.
 *
 * They are named so that bytes that arrive from elsewhere are asked for together, and waited for before computing
 * begins. Every byte that reading the range touches is named. Bytes that lie less than DEPENDENCY_GAP from a byte that
 * is needed may be named too: they come with it, and a transposed matrix has a run of a few bytes in each row. */
#pragma once

#include "quant/view.h"

enum { DEPENDENCY_GAP = 64 * 1024 };

struct dependencies {
    /* Gets each range of a source: bytes [from->offset, from->offset + n_bytes). Ranges may overlap, and come in any
     * order. */
    void (*take)(void *context, const struct extent *from, uint64_t n_bytes);
    void *context;

    /* the range that is added but not taken yet; begins as zeros */
    struct extent from;
    uint64_t n_bytes;
};

/* Adds stored bytes, joined with those that were added before if they lie near. */
void dependencies_add(struct dependencies *to, const struct extent *from, uint64_t n_bytes);

/* Hands on what is left. Call it once, after the last view_depends(). */
void dependencies_end(struct dependencies *to);
