/* Locations: where the files of a model are, opened by name. Today a directory.
 *
 * Paths are relative, with '/' between their parts, and the location itself is "". What is opened stays in the
 * location: symbolic links are followed only to a file below it, or to the blobs of the same repository where it is or
 * is below a snapshot in a hub cache (models--ORG--NAME/snapshots/REVISION). Sources outlive the location they were
 * opened in. */
#pragma once

#include "base/arena.h"
#include "formats/source.h"

struct location;

/* The directory of that path. NULL on failure; the error is the reason alone, to be prefixed by the caller. */
struct location *location_of_directory(const char *path, struct error *error);
/* A folder of the location, which is no symbolic link. As above; it may outlive the location. */
struct location *location_of_folder(const struct location *location, const char *folder, struct error *error);
void location_close(struct location *location); /* NULL is allowed */

/* The names in a folder of the location, sorted as bytes, in `arena`. The error is the reason alone. A folder that is a
 * symbolic link is refused. */
bool location_names(const struct location *location, const char *folder, struct arena *arena,
                    const char *const **ret_names, size_t *ret_n_names, struct error *error);

enum location_kind {
    LOCATION_NOTHING, /* no such name, or no longer */
    LOCATION_FILE,    /* or a link that leads nowhere, or to a file wherever, or what cannot be looked at */
    LOCATION_FOLDER,
    LOCATION_LINKED_FOLDER,
    LOCATION_OTHER, /* a device, a socket, a link to one ... */
};
enum location_kind location_kind(const struct location *location, const char *path);

/* The size of a file; 0 where it cannot be opened. Without opening it. */
uint64_t location_size(const struct location *location, const char *path);

/* Opens a file. The error begins with its path, which is also the source's name. */
struct source *location_open(const struct location *location, const char *path, struct error *error);

/* What is to stand for a file that could not be opened, which `reason` says: source_unopened(). NULL where there is
 * none. A file that is not known to be in the location (*ret_inside) has what is known of the link alone. */
struct source *location_unopened(const struct location *location, const char *path, const char *reason,
                                 bool *ret_inside);
