/* The header of an HDF5 object: a list of messages, such as the datatype of a dataset or the links of a group. */
#pragma once

#include "base/arena.h"
#include "formats/hdf5/file.h"

enum hdf5_message_type {
    HDF5_DATASPACE = 1,
    HDF5_LINK_INFO = 2,
    HDF5_DATATYPE = 3,
    HDF5_OLD_FILL = 4,
    HDF5_FILL = 5,
    HDF5_LINK = 6,
    HDF5_EXTERNAL_FILES = 7,
    HDF5_LAYOUT = 8,
    HDF5_FILTERS = 11,
    HDF5_ATTRIBUTE = 12,
    HDF5_SYMBOL_TABLE = 17,
};

struct hdf5_message {
    uint16_t type;
    bool is_shared; /* the body is not the message, but its place elsewhere */
    const unsigned char *body;
    size_t length;
    uint64_t address; /* of the body in the file */
};

struct hdf5_object {
    uint64_t address;
    struct hdf5_message *messages;
    size_t n_messages;
};

/* Reads the header at an address. The messages live in the arena. */
bool hdf5_object_read(struct hdf5 *file, uint64_t address, struct arena *arena, struct hdf5_object *object,
                      struct error *error);

/* Returns the first message of a type, or NULL. */
const struct hdf5_message *hdf5_message_find(const struct hdf5_object *object, enum hdf5_message_type type);
