/* The names in a folder of a web server: its page of links, or nginx's list in JSON. Nothing here does I/O. */
#pragma once

#include "base/arena.h"
#include "remote/uri.h"

enum { LISTING_NAMES = 100000, LISTING_BYTES = 64 << 20 };

struct listing {
    const char **names; /* decoded; of a folder with a '/' at its end */
    size_t count;
};

/* Finds the names in an answer with that Content-Type, in the arena. Links to anything but what is in the folder itself
 * are left out. Returns false if the text is no list, or has more than LISTING_NAMES names. */
bool listing_parse(const char *text, size_t length, const char *type, const struct uri *folder, struct arena *arena,
                   struct listing *ret_listing);
