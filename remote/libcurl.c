#include "remote/libcurl.h"

#include <dlfcn.h>
#include <pthread.h>

struct libcurl libcurl;
static bool is_loaded;
static struct error failure;

static void load(void)
{
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    is_loaded = library != NULL;
    /* ISO C knows no conversion of an address to a function's; POSIX promises it for dlsym(). */
#define LOAD(name)                                                                                                     \
    libcurl.name = is_loaded ? __extension__(__typeof__(libcurl.name)) dlsym(library, "curl_" #name) : NULL;           \
    is_loaded = libcurl.name != NULL;
    LIBCURL_FUNCTIONS(LOAD)
#undef LOAD
    if (!is_loaded)
        error_set(&failure, "remote sources need the package libcurl4: %s", dlerror());
}

bool libcurl_load(struct error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!is_loaded)
        *error = failure;
    return is_loaded;
}
