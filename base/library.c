#include "base/library.h"

#include <dlfcn.h>

bool library_load(const char *soname, const char *need, const struct library_function *functions, size_t n_functions,
                  struct error *error)
{
    void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    bool is_loaded = library != NULL;
    for (size_t i = 0; i < n_functions && is_loaded; i++) {
        *functions[i].pointer = dlsym(library, functions[i].name);
        is_loaded = *functions[i].pointer != NULL;
    }
    return is_loaded || error_set(error, "%s: %s", need, dlerror());
}
