/* Locations: places whose files are opened by name, such as a directory or a folder on a server. Each kind of location
 * is a row in the table of location_open.c (location_scheme.h); code above locations sees no descriptors.
 *
 * Paths in a location are relative, with '/' between names; "" is the location itself. Opening a file or folder stays
 * in the location: it follows symbolic links only to targets below the location, or, in a snapshot of a hub cache
 * (models--ORG--NAME/snapshots/REVISION), to the blobs of the same repository. LOCATION_FOLLOW permits any target, and
 * so does the file that the user named. Sources outlive the location they were opened in. */
#pragma once

#include "base/arena.h"
#include "sources/source.h"

struct location;

enum location_links { LOCATION_INSIDE, LOCATION_FOLLOW };

/* Opens the folder that `text` names, or the folder of the file that it names: *ret_file is the file's name, which
 * lives as long as the location, or NULL. If `ret_file` is NULL, `text` must name a folder. `links` applies to later
 * paths. Returns NULL on failure; the error begins with `text`, without a URL's secrets. */
struct location *location_open(const char *text, enum location_links links, const char **ret_file, struct error *error);

/* Loads the library that locations on servers need: it may lie where a sandbox forbids to look. What opens such a
 * location reports a failure. */
void location_load_library(void);

/* Reports whether a text, with the variables that name proxies and endpoints, names every port that a location may be
 * read from, besides those of HTTP and HTTPS. Else servers send to others, or a file of settings names them. */
bool location_names_all_ports(const char *text);

/* Returns the name of such a text for messages, lists and metadata, in the arena: a URL without its query and its user,
 * which may be secrets. */
const char *location_shown(const char *text, struct arena *arena);

/* Returns the absolute path without links of a path of this machine, or one that leads into an archive, in the arena;
 * NULL if nothing is there. */
const char *location_real_path(const char *text, struct arena *arena);

/* Returns the model's name if the location knows it, and whether that is a repository's name, which then also names
 * single files; NULL: the name of the directory serves. Lives as long as the location. */
const char *location_model(const struct location *location, bool *ret_is_repository);

/* A revision of a model on the hub. */
struct location_snapshot {
    const char *repository; /* ORG/NAME */
    const char *revision, *commit;
    const char *folder; /* of the location in the repository: "", or with a '/' after it */
};

/* Returns what the location shows of the hub; false if it is elsewhere. The texts live as long as the location. */
bool location_snapshot(const struct location *location, struct location_snapshot *ret_snapshot);

/* Returns the hash that names a file of such a location in the hub's cache: its SHA-256, or the one that git gives it;
 * NULL if it is not known. */
const char *location_blob(const struct location *location, const char *path);

/* Opens a folder of a location, with the same links; it may outlive the location. `name` begins the error. */
struct location *location_folder(const struct location *location, const char *folder, const char *name,
                                 struct error *error);

void location_close(struct location *location); /* NULL is allowed */

enum location_kind {
    LOCATION_NOTHING, /* no such name, or no longer */
    LOCATION_FILE,    /* or a link to a file anywhere, a broken link, or an entry without permission */
    LOCATION_FOLDER,
    LOCATION_LINK, /* in lists alone: location_kind() follows the link */
    LOCATION_LINKED_FOLDER,
    LOCATION_OTHER, /* a device, a socket, a link to one ... */
};

struct location_entry {
    const char *name;
    enum location_kind kind;
};

struct location_list {
    const struct location_entry *entries; /* sorted by name, as bytes */
    size_t count;
};

/* Lists a folder of the location, in `arena`, without following links: one to an unreachable server would block. The
 * error is the reason alone. Refuses a folder that is a symbolic link. */
bool location_list(const struct location *location, const char *folder, struct arena *arena,
                   struct location_list *ret_list, struct error *error);

/* Reports whether a list has an entry of that name. */
bool location_list_has(const struct location_list *list, const char *name);

enum location_kind location_kind(const struct location *location, const char *path);

/* Identifies a file without opening it, its size included; returns false if there is none. If *ret_inside is false, the
 * file is not in the location, and the identity is the link's own. */
bool location_identify(const struct location *location, const char *path, struct source_identity *ret_identity,
                       bool *ret_inside);

/* Opens a file of the location. The error begins with its path, which is also the source's name. */
struct source *location_source(const struct location *location, const char *path, struct error *error);

/* Like location_source(), but `name` is the source's name and begins the error. */
struct source *location_source_as(const struct location *location, const char *path, const char *name,
                                  struct error *error);

/* Opens the file that `text` names. Its name and the beginning of the error are location_shown(text). */
struct source *location_open_file(const char *text, struct error *error);
