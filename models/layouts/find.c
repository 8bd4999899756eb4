#include "models/layouts/find.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* The file of an installed layout, or of one in the build directory. */
static const char *installed_path(const char *name, struct arena *arena)
{
    static const char *const places[] = {"../share/wfs/layouts", "models/layouts"};
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return NULL;
    program[length] = '\0';
    *strrchr(program, '/') = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *path = arena_printf(arena, "%s/%s/%s.json", program, places[i], name);
        if (access(path, R_OK) == 0)
            return path;
    }
    return NULL;
}

static const char *base_name(const char *path, struct arena *arena)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    return arena_strndup(arena, base, strlen(base) - (text_ends_with(base, ".json") ? strlen(".json") : 0));
}

bool layout_find(const char *text, struct arena *arena, struct layout_request *ret_request, struct error *error)
{
    const char *colon = strchr(text, ':');
    const char *given = arena_strndup(arena, text, colon != NULL ? (size_t)(colon - text) : strlen(text));
    bool is_path = strchr(given, '/') != NULL || text_ends_with(given, ".json");
    const char *path = is_path ? given : installed_path(given, arena), *name = base_name(given, arena);
    if (path == NULL)
        return error_set(error, "there is no layout '%.100s'", given);
    if (*name == '\0' || *name == '.')
        return error_set(error, "'%.200s' does not name a layout file", given);
    struct source *source = source_open(AT_FDCWD, path, path, error);
    if (source == NULL)
        return false;
    ret_request->file = layout_file_read(source, name, arena, error);
    ret_request->parameters = colon != NULL ? arena_strdup(arena, colon + 1) : NULL;
    source_close(source);
    return ret_request->file != NULL;
}
