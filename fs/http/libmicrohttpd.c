#include "fs/http/libmicrohttpd.h"

#include "base/library.h"

struct libmicrohttpd libmicrohttpd;

bool libmicrohttpd_load(struct error *error)
{
#define FUNCTION(name) {"MHD_" #name, (void **)&libmicrohttpd.name},
    static const struct library_function functions[] = {LIBMICROHTTPD_FUNCTIONS(FUNCTION)};
#undef FUNCTION
    return library_load("libmicrohttpd.so.12",
                        "the HTTP server needs libmicrohttpd (on Debian the package libmicrohttpd12)", functions,
                        sizeof functions / sizeof *functions, error);
}
