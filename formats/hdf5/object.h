/* The header of an HDF5 object: a list of messages, such as the datatype of a dataset or the links of a group. */
#pragma once

#include "base/arena.h"
#include "formats/hdf5/file.h"
#include "quant/blocks/dtype.h"

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

/* The datatype of an HDF5 dataset: what its elements are in wfs. */

struct hdf5_type {
    const struct dtype *dtype; /* of the elements; U8 if there is a refusal */
    bool swap;                 /* stored with the other byte order */
    bool is_opaque;            /* of 2 bytes: bfloat16 if an attribute names it so */
    uint64_t size;             /* bytes of a stored element */
    const char *refusal;       /* why elements have no values: "strings have no values"; else NULL */
    bool is_no_number;         /* refused elements are texts, times, references or bytes without a type */
};

/* Reads a datatype. Types that wfs has no dtype for get a refusal; only damage fails. */
bool hdf5_type_read(const struct hdf5 *file, const struct hdf5_message *message, struct hdf5_type *type,
                    struct error *error);

/* The filters of a dataset, which compress its chunks, undone. */

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

/* The links of an HDF5 group, in any of their three forms: a symbol table, messages, or a heap with a B-tree. */

struct hdf5_link {
    const char *name; /* NUL-terminated; has no NUL in it */
    bool is_hard;     /* else the link gives a path, which is not followed */
    bool is_external; /* the path is in another file */
    uint64_t address; /* of the object's header, for a hard link */
};

struct hdf5_links {
    struct hdf5_link *links; /* sorted by name; in the arena, with the names */
    size_t n_links;
};

/* Reports whether the object is a group, with links or without. */
bool hdf5_is_group(const struct hdf5_object *object);

/* Reads the links of a group. Fails if two have one name: a program that looks the name up finds either of them. */
bool hdf5_links_read(struct hdf5 *file, const struct hdf5_object *group, struct arena *arena, struct hdf5_links *links,
                     struct error *error);
