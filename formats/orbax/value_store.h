/* Values by key, as the arrays of zarr are kept: in an OCDBT database, or in a file each.
 *
 * OCDBT is TensorStore's database of immutable files: manifest.ocdbt names the root of a B+tree, whose leaves name the
 * files that hold the values. The whole tree is read, every node with its checksum; values are not. Versions before the
 * newest are ignored. A store is complete before anything is read from it, and does not change after that. */
#pragma once

#include "base/text_index.h"
#include "formats/checkpoint_builder.h"
#include "sources/location.h"

/* Where a value lies: in a source of the checkpoint. */
struct stored_value {
    struct source *source;
    uint64_t offset, length;
};

struct value_store {
    struct text_index keys; /* of values, by their number */
    const char **names;     /* the keys, in the order added; in the checkpoint's arena, like the values */
    struct stored_value *values;
    size_t n_values, n_sources;
};

/* Adds a value; false if the key is present. The key is not copied. */
bool value_store_add(struct value_store *store, struct checkpoint *checkpoint, const char *key, size_t length,
                     const struct stored_value *value);

/* Returns the value of a key, or NULL. */
const struct stored_value *value_store_find(const struct value_store *store, const char *key);

/* Opens a file of the location as a source of the checkpoint, and counts it; NULL, with an error. */
struct source *value_store_open(struct value_store *store, struct checkpoint *checkpoint,
                                const struct location *location, const char *path, struct error *error);

void value_store_free(struct value_store *store);

extern const char ocdbt_manifest[]; /* "manifest.ocdbt" */

/* Adds all values of the database in a folder: "", or its path with a '/' at its end. */
bool ocdbt_read(struct value_store *store, struct checkpoint *checkpoint, const struct location *location,
                const char *folder, struct error *error);
