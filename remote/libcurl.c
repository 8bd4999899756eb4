#include "remote/libcurl.h"

#include "base/library.h"

#include <pthread.h>

struct libcurl libcurl;
static bool is_loaded;
static struct error failure;

static void load(void)
{
#define FUNCTION(name) {"curl_" #name, (void **)&libcurl.name},
    static const struct library_function functions[] = {LIBCURL_FUNCTIONS(FUNCTION)};
#undef FUNCTION
    is_loaded = library_load("libcurl.so.4", "remote sources need libcurl (on Debian the package libcurl4)", functions,
                             sizeof functions / sizeof *functions, &failure);
}

bool libcurl_load(struct error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!is_loaded)
        *error = failure;
    return is_loaded;
}
