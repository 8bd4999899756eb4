/* Paths of HTTP requests, as clients of the model hub and of OCI registries ask for them.
 *
 *     /                                          the page for people
 *     /ORG/                                      an index of the models of an owner
 *     /ORG/NAME/PATH                             a file, or an index of a directory
 *     /view/ORG/NAME                             the viewer of a model (viewer.h)
 *     /healthz                                   whether the server answers
 *     /metrics                                   counters
 *     /api/models                                all models
 *     /api/models/ORG/NAME[/revision/REV]        a model
 *     /api/models/ORG/NAME/refs                  its branches
 *     /api/models/ORG/NAME/tree/REV[/PATH]       its files
 *     /ORG/NAME/resolve/REV/PATH                 a file
 *     /BUCKET/KEY                                an object, if the client speaks S3 (s3.h)
 *     /v2/                                       whether there is a registry
 *     /v2/ORG/NAME/tags/list                     the tags of a model
 *     /v2/ORG/NAME/manifests/TAG                 the manifest of a tag, or the file of a model for llama.cpp
 *     /v2/ORG/NAME/blobs/DIGEST                  a file or a text of a manifest
 *     /v2/ORG/NAME/referrers/DIGEST              what refers to a manifest: nothing
 *
 * The names that the fixed paths begin with, such as "api" and "view", are no owners.
 *
 * A path is split at its slashes before it is percent-decoded, so that a revision can have encoded slashes:
 * refs%2Fpr%2F1. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>

enum route_kind {
    ROUTE_UNKNOWN,
    ROUTE_PAGE,
    ROUTE_OWNER,
    ROUTE_PATH,
    ROUTE_VIEW,
    ROUTE_HEALTH,
    ROUTE_S3,
    ROUTE_DAV, /* what is ROUTE_PAGE, ROUTE_OWNER or ROUTE_PATH otherwise: `repository` tells which */
    ROUTE_METRICS,
    ROUTE_MODELS,
    ROUTE_MODEL,
    ROUTE_REFS,
    ROUTE_TREE,
    ROUTE_FILE,
    ROUTE_REGISTRY,
    ROUTE_TAGS,
    ROUTE_MANIFEST,
    ROUTE_BLOB,
    ROUTE_REFERRERS,
};

struct route {
    enum route_kind kind;
    const char *repository; /* "ORG/NAME"; "ORG" for an owner, "" for the page */
    const char *revision;   /* or the tag or digest of a manifest or blob; "main" if the path has none */
    const char *path;       /* in the repository, without slashes at its ends; "" is the top */
    bool is_directory;      /* the path ends with a slash */
};

/* Reports whether an owner of models may have that name. */
bool route_is_owner(const char *name);

/* Parses the path of a request target, without its query, in `arena`. A path with an invalid escape, a NUL byte or a
 * part that is "." or ".." is ROUTE_UNKNOWN. */
struct route route_parse(const char *target, struct arena *arena);

/* Parses the path of a request to S3, "/BUCKET/KEY", which is ROUTE_S3: the bucket is the repository, "" for all of
 * them, and the key the path, with all of its slashes. A path with an invalid escape or a NUL byte is ROUTE_UNKNOWN. */
struct route route_parse_s3(const char *target, struct arena *arena);

/* Returns the path of a request target, and as `*ret_host` the server that an absolute target names: "host:80" of
 * "http://host:80/path", which clients send to proxies and every server must accept. NULL: the target has only a path.
 * Source: RFC 9112, section 3.2.2. */
const char *route_path(const char *target, const char **ret_host, struct arena *arena);
