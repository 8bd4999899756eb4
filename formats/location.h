/* Locations: where the files of a model are, opened by name: a directory, a folder on a server. Each kind of location
 * is a row in the table of location_open.c (location_scheme.h); nothing above a location knows descriptors.
 *
 * Paths in a location are relative, with '/' between their parts, and the location itself is "". What is opened stays
 * in the location: symbolic links are followed only to what is below it, or to the blobs of the same repository where
 * it is or is below a snapshot in a hub cache (models--ORG--NAME/snapshots/REVISION); with LOCATION_FOLLOW they are
 * followed anywhere. The file that the user named may itself be such a link. Sources outlive the location they were
 * opened in. */
#pragma once

#include "base/arena.h"
#include "formats/source.h"

struct location;

enum location_links { LOCATION_INSIDE, LOCATION_FOLLOW };

/* Opens the folder that `text` names, or the one that holds the file that it names: *ret_file is the file's name, as
 * long as the location, and NULL where `text` names a folder. With a `ret_file` of NULL, only a folder will do. `links`
 * says which links are followed in it. NULL on failure; the error begins with `text`. */
struct location *location_open(const char *text, enum location_links links, const char **ret_file, struct error *error);

/* What messages, lists and metadata call such a text: a URL without its query and its user, which may be secrets. In
 * the arena. */
const char *location_shown(const char *text, struct arena *arena);

/* The name that the location has for the model in it, and whether that is a repository's, which files in it go by; NULL
 * if its directory's name is the model's. As long as the location. */
const char *location_model(const struct location *location, bool *ret_is_repository);

/* Opens a folder of a location, with the same links. It may outlive the location. `name` begins the error. */
struct location *location_folder(const struct location *location, const char *folder, const char *name,
                                 struct error *error);

void location_close(struct location *location); /* NULL is allowed */

enum location_kind {
    LOCATION_NOTHING, /* no such name, or no longer */
    LOCATION_FILE,    /* or a link that leads nowhere, or to a file wherever, or what cannot be looked at */
    LOCATION_FOLDER,
    LOCATION_LINK, /* in lists alone: a link, whose target location_kind() looks at */
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

/* Lists a folder of the location, in `arena`. Targets of links are not looked at: one on a server that is gone would
 * block. The error is the reason alone. A folder that is a symbolic link is refused. */
bool location_list(const struct location *location, const char *folder, struct arena *arena,
                   struct location_list *ret_list, struct error *error);

/* Reports whether a list has an entry of that name. */
bool location_list_has(const struct location_list *list, const char *name);

enum location_kind location_kind(const struct location *location, const char *path);

/* Identifies a file without opening it, its size included; false where there is none. For a file that is not known to
 * be in the location (*ret_inside) the identity is that of the link alone. */
bool location_identify(const struct location *location, const char *path, struct source_identity *ret_identity,
                       bool *ret_inside);

/* Opens a file of the location. The error begins with its path, which is also the source's name. */
struct source *location_source(const struct location *location, const char *path, struct error *error);

/* As location_source(), but `name` is the source's name and begins the error. */
struct source *location_source_as(const struct location *location, const char *path, const char *name,
                                  struct error *error);

/* Opens the one file that `text` names, which is, without its query, also the source's name and begins the error. */
struct source *location_open_file(const char *text, struct error *error);
