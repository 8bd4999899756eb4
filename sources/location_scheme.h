/* Kinds of locations: for the files that implement one.
 *
 * To add one: `formats/location_x.c` exporting `const struct location_scheme x_scheme`, its declaration here, and a row
 * in the table of location_open.c. */
#pragma once

#include "sources/location.h"

/* Adds an entry to the list of a folder, in any order. Copies the name. */
struct location_listing;
void location_add(struct location_listing *listing, const char *name, enum location_kind kind);

/* The operations of a location, as the functions of location.h describe them; safe from any number of threads. */
struct location_ops {
    void (*close)(void *context); /* frees the context */
    struct location *(*folder)(const void *context, const char *folder, const char *name, struct error *error);
    bool (*list)(const void *context, const char *folder, struct location_listing *listing, struct error *error);
    enum location_kind (*kind)(const void *context, const char *path);
    bool (*identify)(const void *context, const char *path, struct source_identity *ret_identity, bool *ret_inside);
    /* like location_model(); may be NULL */
    const char *(*name)(const void *context, bool *ret_is_repository);
    /* like location_snapshot(); may be NULL */
    bool (*snapshot)(const void *context, struct location_snapshot *ret_snapshot);
    /* like location_blob(); may be NULL */
    const char *(*blob)(const void *context, const char *path);
    /* the source's name begins the error */
    struct source *(*open)(const void *context, const char *path, const char *name, struct error *error);
};

/* Takes the context. */
struct location *location_new(const struct location_ops *ops, void *context);

struct location_scheme {
    const char *prefix; /* of texts that name such a location: "https://"; "" fits all texts that no earlier row does */
    struct location *(*open)(const char *text, enum location_links links, const char **ret_file, struct error *error);
    /* like location_names_all_ports(); NULL: its texts do */
    bool (*names_all_ports)(void);
};

extern const struct location_scheme local_scheme, https_scheme, http_scheme, hub_scheme, ollama_scheme, s3_scheme;
