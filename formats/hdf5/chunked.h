/* The chunks of a file's datasets, decoded, as one source.
 *
 * The source has the chunks of each dataset one after the other, in the order of their grid, each as large as a whole
 * chunk; chunks that are not stored have the fill value. Views put the chunks at their places. The index of a dataset
 * is read when the first of its bytes is, and decoded chunks are kept in the cache of chunk_cache.h. */
#pragma once

#include "formats/hdf5/dataset.h"

/* The chunks that a file has, from any of HDF5's six kinds of index (chunk_index.c). */

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

/* The source. */

struct hdf5_chunked;

/* Makes an empty collection for a file, which it does not keep. hdf5_chunked_free() or hdf5_chunked_source() takes it.
 */
struct hdf5_chunked *hdf5_chunked_new(const struct hdf5 *file);
void hdf5_chunked_free(void *chunked);

/* Adds a copy of a chunked dataset that has elements and no refusal; returns false if places overflow. */
bool hdf5_chunked_add(struct hdf5_chunked *chunked, const struct hdf5_dataset *dataset);

/* Return the datasets in the order added, and the place of a dataset's first chunk in the source. */
size_t hdf5_chunked_count(const struct hdf5_chunked *chunked);
const struct hdf5_dataset *hdf5_chunked_dataset(const struct hdf5_chunked *chunked, size_t index, uint64_t *ret_start);

/* Makes the source of all datasets; NULL: there are none. The file's source must outlive it. */
struct source *hdf5_chunked_source(struct hdf5_chunked *chunked);
