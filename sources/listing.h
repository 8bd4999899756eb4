/* Names in a folder of a web server, from its HTML page of links or nginx's JSON list. Nothing here does I/O. */
#pragma once

#include "base/arena.h"
#include "remote/uri.h"

enum {
    LISTING_NAMES = 100000,
    LISTING_LINKS = 4 * LISTING_NAMES, /* a page may link to a file from its icon, name and size */
    LISTING_BYTES = 64 << 20,
};

struct listing {
    const char **names; /* decoded, each once; folders end in '/' */
    size_t count;
    bool is_too_long; /* there are more than LISTING_NAMES, or more links than LISTING_LINKS */
};

/* Finds the names in an answer with that Content-Type, in the arena. Ignores links that leave the folder. Returns false
 * if the text is not a list, or a page has no such link. A list of more names is cut, and says so. */
bool listing_parse(const char *text, size_t length, const char *type, const struct uri *folder, struct arena *arena,
                   struct listing *ret_listing);
