/* An HDF5 dataset as its messages describe it. */
#pragma once

#include "formats/hdf5/object.h"

/* HDF5's own limit. */
enum { HDF5_MAX_RANK = 32 };

enum hdf5_storage {
    HDF5_STORED,    /* in one run of bytes at `address`, which is inside the file */
    HDF5_UNWRITTEN, /* nowhere: each element is the fill value */
    HDF5_CHUNKED,
};

/* Where the chunks of a dataset are listed. */
enum hdf5_index {
    HDF5_TREE_1,
    HDF5_SINGLE,
    HDF5_IMPLICIT,
    HDF5_FIXED_ARRAY,
    HDF5_EXTENSIBLE_ARRAY,
    HDF5_TREE_2,
};

struct hdf5_dataset {
    struct hdf5_type type;
    unsigned rank;
    uint64_t shape[HDF5_MAX_RANK], most[HDF5_MAX_RANK]; /* how far it may grow; UINT64_MAX: without limit */
    uint64_t n_elements, n_bytes;
    unsigned char fill[16]; /* the fill value, as it is stored */
    const char *refusal;    /* why it has no values; NULL: it has */
    bool is_no_number;      /* it is refused, and stores no numbers */

    enum hdf5_storage storage;
    uint64_t address; /* of the elements, or of the index */

    /* of chunks */
    enum hdf5_index index;
    uint64_t chunk[HDF5_MAX_RANK], chunk_bytes;
    struct hdf5_filters filters;
    uint64_t single_size; /* bytes of the only chunk of HDF5_SINGLE, and its mask */
    uint32_t single_mask;
};

/* Reports whether the object is a dataset. */
bool hdf5_is_dataset(const struct hdf5_object *object);

/* Reads a dataset. What wfs does not show becomes a refusal, in the arena; only damage fails. */
bool hdf5_dataset_read(struct hdf5 *file, const struct hdf5_object *object, struct arena *arena,
                       struct hdf5_dataset *dataset, struct error *error);

/* Returns the string attribute of an object, which the caller frees; NULL if it has no such attribute, or one of
 * another type, or longer than `limit`. */
char *hdf5_attribute(struct hdf5 *file, const struct hdf5_message *message, const char **ret_name, size_t limit,
                     struct arena *arena);

/* The chunks of a file's datasets, decoded, as one source.
 *
 * The source has the chunks of each dataset one after the other, in the order of their grid, each as large as a whole
 * chunk; chunks that are not stored have the fill value. Views put the chunks at their places. The index of a dataset
 * is read when the first of its bytes is, and decoded chunks are kept in the cache of chunk_cache.h. */

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
