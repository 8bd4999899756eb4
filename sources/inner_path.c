#include "sources/paths.h"

#include <limits.h>
#include <string.h>

static bool is_name(const char *name, size_t length)
{
    bool is_here = length == 1 && name[0] == '.', is_above = length == 2 && name[0] == '.' && name[1] == '.';
    return length > 0 && !is_here && !is_above;
}

bool inner_path(const char *path, size_t length)
{
    if (length == 0 || length >= PATH_MAX || memchr(path, '\0', length) != NULL)
        return false;
    for (const char *end = path + length;; path++) {
        const char *slash = memchr(path, '/', (size_t)(end - path));
        if (!is_name(path, (size_t)((slash != NULL ? slash : end) - path)))
            return false;
        if (slash == NULL)
            return true;
        path = slash;
    }
}
