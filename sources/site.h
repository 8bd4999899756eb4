/* Sites: lists of files on servers, made once, for the location schemes that need them.
 *
 * One thread fills a site with site_add() and then makes it a location, which shares the site with the locations of its
 * folders. Names come from servers: site_add() refuses a path that could lead outside the site. */
#pragma once

#include "remote/object.h"
#include "sources/location_scheme.h"
#include "sources/source.h"

enum {
    SITE_FILES = 100000,    /* the most files that a scheme lists */
    SITE_FIRST = 256 << 10, /* bytes of a file fetched when the location opens: a header */
    SITE_WANTED = 512,      /* files of which these are fetched; others come when they are opened */
};

#define SITE_LARGEST (UINT64_C(1) << 50) /* bytes of a file: no store has larger ones, and positions stay 63 bits */

struct site {
    struct arena *arena;
    const char *shown;                          /* its name in messages: the URI without a query */
    const char *name;                           /* of the model */
    const char *repository, *revision, *commit; /* of a model on the hub, else NULL */
    struct site_file {
        const char *path; /* with '/' between its parts */
        struct object_origin origin;
        struct timespec modified;
        const char *blob; /* like location_blob(); may be NULL */
        const char *copy; /* the path of a copy on this machine; NULL: none */
    } * files;
    size_t count;
};

/* Reports whether opening a model reads the beginning of such a file. */
bool site_is_read_first(const char *path);

struct site *site_new(const char *shown);
void site_free(struct site *site); /* a site that has not become a location */

/* Adds a file, whose texts must be in the site's arena. Returns false, adding nothing, if the path may not be shown. */
bool site_add(struct site *site, const struct site_file *file);

/* Saves the list of files in the store, under a name, for site_recall(). Omits files without an ETag. */
void site_remember(const struct site *site, const char *memo);

/* Calls take() for each file saved under the name; the texts live in the arena. Returns false if nothing was saved or,
 * possibly after some calls, a line of it cannot be read. */
struct site_memory {
    const char *path, *etag;
    uint64_t size;
    int64_t modified; /* seconds since 1970 */
};
typedef void site_take(void *context, const struct site_memory *memory);
bool site_recall(const char *memo, struct arena *arena, site_take *take, void *context);

/* Makes the location of a folder of the site ("": the whole site), and starts fetching the bytes that opening a model
 * reads first. Takes the site, even on failure, which means that there is no such folder. With a `ret_file`, `path` may
 * also name a file: the location is that of its folder. */
struct location *site_location(struct site *site, const char *path, const char **ret_file, struct error *error);

/* Sources that are objects on servers (remote/object.h). */

struct source_identity source_remote_identity(const struct object_origin *origin, struct timespec modified);

/* Takes the object, and copies the texts. Messages call the source `name`. */
struct source *source_remote_new(struct object *object, const struct source_identity *identity,
                                 const struct source_server *server, const char *name);
