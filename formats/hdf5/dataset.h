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
