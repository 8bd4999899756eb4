/* The chunks of a dataset, from any of HDF5's six kinds of index. */
#pragma once

#include "formats/hdf5/dataset.h"

struct hdf5_chunk {
    uint64_t number;        /* in the grid of chunks that covers the shape, row-major */
    uint64_t address, size; /* of its stored bytes, which are inside the file */
    uint32_t mask;          /* filters that it was stored without, bit i the i-th */
};

struct hdf5_chunks {
    struct hdf5_chunk *chunks; /* on the heap, sorted by number; those that are not stored are missing */
    size_t n_chunks;
};

/* Computes the number of chunks along each dimension that `shape` needs. */
void hdf5_chunk_grid(const struct hdf5_dataset *dataset, const uint64_t *shape, uint64_t *grid);

/* Reads the index of a chunked dataset without refusal. Ignores chunks outside the shape; fails if two chunks are at
 * one place, or are outside the file. The budget of the file must be that of a whole file. */
bool hdf5_chunks_read(struct hdf5 *file, const struct hdf5_dataset *dataset, struct hdf5_chunks *chunks,
                      struct error *error);
