/* URLs of files and folders on web servers.
 *
 * libcurl parses and resolves them. The query of a URL may be a secret (a signature, a SAS token), so that only the
 * transport sees `text`; messages, tables of mounts and metadata use `shown`. A user and a password in a URL are
 * refused: they would be seen in lists of processes. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

struct uri {
    const char *text;   /* all of it, without a fragment: for the transport alone */
    const char *shown;  /* without the query */
    const char *origin; /* "https://host:443": the port always, the host in lower case */
    const char *path;   /* percent-encoded, from its '/' on */
    const char *query;  /* without its '?'; "" if the URL has none */
};

/* Parses a whole http:// or https:// URL, in the arena. The error is the reason alone and shows nothing of the URL. */
bool uri_parse(const char *text, struct arena *arena, struct uri *ret_uri, struct error *error);

/* Resolves a reference, such as that of a redirect, against the URL it was found at. The rest as uri_parse(). */
bool uri_resolve(const struct uri *base, const char *reference, struct arena *arena, struct uri *ret_uri,
                 struct error *error);

/* The URL of `name`, an unencoded path with '/' between its parts, below a folder, whose path ends in '/'. It keeps the
 * folder's query. */
struct uri uri_below(const struct uri *folder, const char *name, struct arena *arena);

/* The folder that holds what a URL names: the path up to its last '/', with the same query. */
struct uri uri_parent(const struct uri *uri, struct arena *arena);

/* Copies a URL into another arena. */
struct uri uri_copy(const struct uri *uri, struct arena *arena);

bool uri_same_origin(const struct uri *a, const struct uri *b);

/* Reports whether nobody on the way can read or change what is exchanged: https, or a loopback address. */
bool uri_is_private(const struct uri *uri);
