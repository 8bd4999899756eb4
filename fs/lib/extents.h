/* The tensors in a file of any format, and the bytes between, for archives: equal extents of two files are stored once.
 */
#pragma once

#include "quant/blocks/dtype.h"
#include "sources/source.h"

/* Bytes of a file that are stored as a tensor. */
struct packed_extent {
    uint64_t offset, length;
    const struct dtype *dtype; /* of a tensor of a checkpoint; NULL: what lies between */
    uint64_t row;              /* values of the tensor's innermost dimension; 0: unknown */
    char *name;                /* of the tensor, in memory that extents_free() frees; NULL: it is none */
};

/* Divides a file: the tensors that a checkpoint of it stores, and the bytes between. extents_free() frees them. */
struct packed_extent *extents_of(struct source *file, const char *path, size_t *ret_count);
void extents_free(struct packed_extent *extents, size_t count);
