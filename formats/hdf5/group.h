/* The links of an HDF5 group, in any of their three forms: a symbol table, messages, or a heap with a B-tree. */
#pragma once

#include "formats/hdf5/object.h"

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
