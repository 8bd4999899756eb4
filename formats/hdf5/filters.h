/* The filters of a dataset, which compress its chunks, undone. */
#pragma once

#include "formats/hdf5/object.h"

enum { HDF5_MAX_FILTERS = 32 };

struct hdf5_filter {
    uint16_t id;
    uint32_t element; /* bytes, of a shuffle */
};

struct hdf5_filters {
    struct hdf5_filter list[HDF5_MAX_FILTERS];
    unsigned n_filters;
    const char *refusal; /* why chunks cannot be decoded; NULL: they can */
};

/* Reads a message of filters; a filter that wfs does not undo becomes a refusal, which lives in the arena. */
bool hdf5_filters_read(const struct hdf5 *file, const struct hdf5_message *message, struct arena *arena,
                       struct hdf5_filters *filters, struct error *error);

/* Reports whether a chunk is stored as it is: its mask leaves out all filters, bit i the i-th. */
bool hdf5_filters_skip(const struct hdf5_filters *filters, uint32_t mask);

/* Undoes the filters of the `stored` bytes of a chunk, which it changes, into exactly `length` bytes. Returns NULL, or
 * the reason for failing. */
const char *hdf5_filters_undo(const struct hdf5_filters *filters, uint32_t mask, unsigned char *stored,
                              size_t stored_length, unsigned char *out, size_t length);
