/* B-trees of version 2, which index the links of large groups and the chunks of some datasets. */
#pragma once

#include "formats/hdf5/file.h"

struct hdf5_tree2 {
    unsigned type;
    size_t record_size;
};

/* Takes a record of `tree->record_size` bytes; returns false, with an error, to stop. */
typedef bool hdf5_take_record(void *context, const struct hdf5_tree2 *tree, const unsigned char *record,
                              struct error *error);

/* Calls take() for each record of the tree at an address, in no particular order. */
bool hdf5_tree2_read(struct hdf5 *file, uint64_t address, hdf5_take_record *take, void *context, struct error *error);
