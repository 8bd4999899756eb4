/* Locations that are lists of files on servers, made once: for the schemes that make them.
 *
 * A site is filled with site_add() by one thread, and then made a location, which shares it with the locations of its
 * folders. Names come from servers: a path that could name something else than a file below the site is left out. */
#pragma once

#include "formats/location_scheme.h"
#include "remote/object.h"

enum {
    SITE_FILES = 100000,    /* more are an error */
    SITE_FIRST = 256 << 10, /* bytes of a weights file that are fetched when the location is opened: its header */
};

struct site {
    struct arena *arena;
    const char *shown;   /* what messages call it: the URI without a query */
    const char *name;    /* of the model */
    const char *version; /* the commit that the files are of; NULL: none */
    bool is_repository;
    struct site_file {
        const char *path; /* with '/' between its parts */
        struct object_origin origin;
        struct timespec modified;
        const char *copy; /* the path of a copy on this machine; NULL: none */
    } * files;
    size_t count, capacity;
};

/* Reports whether opening a model reads the beginning of a file, by its name. */
bool site_is_read_first(const char *path);

struct site *site_new(const char *shown);
void site_free(struct site *site); /* that has become no location */

/* Adds a file, whose texts must be in the site's arena. False: the path is none that may be shown. */
bool site_add(struct site *site, const struct site_file *file);

/* Keeps what is known of the files with the store, under a name, for site_recall(). Files without an ETag are left out.
 */
void site_remember(const struct site *site, const char *memo);

/* Calls take() for each file that was kept under the name; the texts live in the arena. Returns false if nothing was
 * kept, or what was cannot be read. */
struct site_memory {
    const char *path, *etag;
    uint64_t size;
    int64_t modified; /* seconds since 1970 */
};
typedef void site_take(void *context, const struct site_memory *memory);
bool site_recall(const char *memo, struct arena *arena, site_take *take, void *context);

/* Makes the location of a folder of the site, "" for all of it, and begins to fetch what opening a model reads first.
 * Takes the site, also if it fails: there is no such folder. With a `ret_file`, `path` may also name a file: the
 * location is that of its folder. */
struct location *site_location(struct site *site, const char *path, const char **ret_file, struct error *error);
