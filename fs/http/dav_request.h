/* Bodies of WebDAV's PROPFIND: which properties a client asks for. Source: RFC 4918, sections 9.1 and 14.20. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { DAV_MOST_PROPERTIES = 64 }; /* each is answered for each entry of a directory */

struct dav_name {
    const char *space; /* the URI of its namespace; "": none */
    const char *name;
};

struct dav_request {
    enum { DAV_ALL, DAV_NAMES, DAV_NAMED } kind; /* all properties, the names of all, or those that are named */
    const struct dav_name *names;                /* DAV_NAMED */
    size_t n_names;
};

/* Reads a body of at most INT_MAX bytes, in `arena`; an empty one asks for all properties. Fails for what is not XML or
 * no propfind, for document types, which entities need, and for more than DAV_MOST_PROPERTIES. */
bool dav_request_read(const char *text, size_t length, struct arena *arena, struct dav_request *ret_request,
                      struct error *error);
