#include "fs/mount/session_options.h"

#include <fnmatch.h>
#include <limits.h>
#include <string.h>

/* Copies the first name of a path, whose rest it returns. */
static const char *take_name(const char *path, char name[PATH_MAX])
{
    path += strspn(path, "/");
    size_t length = strcspn(path, "/");
    if (length >= PATH_MAX)
        length = PATH_MAX - 1;
    memcpy(name, path, length);
    name[length] = '\0';
    path += length;
    return path + strspn(path, "/");
}

static bool agrees(const char *pattern, const char *path, bool is_directory)
{
    char part[PATH_MAX], name[PATH_MAX];
    while (*pattern != '\0' && *path != '\0') {
        pattern = take_name(pattern, part);
        path = take_name(path, name);
        if (fnmatch(part, name, 0) != 0)
            return false;
    }
    return *pattern == '\0' || is_directory;
}

bool only_lists(const struct only *only, const char *path, bool is_directory)
{
    bool is_listed = only->n_patterns == 0;
    for (size_t i = 0; i < only->n_patterns && !is_listed; i++)
        is_listed = agrees(only->patterns[i], path, is_directory);
    return is_listed;
}
