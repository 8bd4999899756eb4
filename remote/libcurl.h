/* libcurl, loaded when the first remote source is opened: with its own libraries it would more than double the time
 * that a command on local files needs to start.
 *
 * The header of libcurl gives the types; the functions are called through `libcurl`, never by their own names. */
#pragma once

#include "base/error.h"

#include <curl/curl.h>

#define LIBCURL_FUNCTIONS(f)                                                                                           \
    f(easy_cleanup) f(easy_getinfo) f(easy_init) f(easy_setopt) f(easy_strerror) f(free) f(getdate) f(global_init)     \
        f(multi_add_handle) f(multi_info_read) f(multi_init) f(multi_perform) f(multi_poll) f(multi_remove_handle)     \
            f(multi_setopt) f(multi_wakeup) f(slist_append) f(slist_free_all) f(url) f(url_cleanup) f(url_get)         \
                f(url_set) f(url_strerror)

#define LIBCURL_FIELD(name) __typeof__(curl_##name) *name;
struct libcurl {
    LIBCURL_FUNCTIONS(LIBCURL_FIELD)
};
#undef LIBCURL_FIELD

/* The functions, once libcurl_load() has returned true. */
extern struct libcurl libcurl;

/* Loads the library, once in the life of the process; safe from any thread. Call it before all else of this room that
 * parses URLs or answers, or makes requests. The error names the package that is missing. */
bool libcurl_load(struct error *error);
