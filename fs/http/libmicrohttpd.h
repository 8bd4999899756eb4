/* libmicrohttpd, loaded when a server starts: the library of TLS that it needs, which wfs does not use, would add a
 * quarter to the time that every other command takes to start.
 *
 * The header of libmicrohttpd gives the types; the functions are called through `libmicrohttpd`, never by their own
 * names. */
#pragma once

#include "base/error.h"

#include <microhttpd.h>

#define LIBMICROHTTPD_FUNCTIONS(f)                                                                                     \
    f(add_response_header) f(create_response_from_buffer) f(create_response_from_callback) f(destroy_response)         \
        f(get_connection_info) f(get_connection_values) f(lookup_connection_value) f(queue_response)                   \
            f(resume_connection) f(start_daemon) f(stop_daemon) f(suspend_connection)

#define LIBMICROHTTPD_FIELD(name) __typeof__(MHD_##name) *name;
struct libmicrohttpd {
    LIBMICROHTTPD_FUNCTIONS(LIBMICROHTTPD_FIELD)
};
#undef LIBMICROHTTPD_FIELD

/* The functions, once libmicrohttpd_load() has returned true. */
extern struct libmicrohttpd libmicrohttpd;

/* Loads the library, before the first server starts. The error names the package that is missing. */
bool libmicrohttpd_load(struct error *error);
