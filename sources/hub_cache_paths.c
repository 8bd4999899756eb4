#include "sources/paths.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *home_directory(void)
{
    const char *home = getenv("HOME");
    if (home != NULL && *home != '\0')
        return home;
    const struct passwd *user = getpwuid(getuid());
    return user != NULL ? user->pw_dir : "/";
}

/* Returns the directory that an environment variable names, with a leading "~" expanded; NULL if it names none. */
static const char *directory_from_environment(struct arena *arena, const char *variable)
{
    const char *value = getenv(variable);
    if (value == NULL || *value == '\0')
        return NULL;
    bool in_home = value[0] == '~' && (value[1] == '/' || value[1] == '\0');
    return in_home ? arena_printf(arena, "%s%s", home_directory(), value + 1) : value;
}

const char *hub_cache_directory(struct arena *arena)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HUGGINGFACE_HUB_CACHE", ""},
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *directory = directory_from_environment(arena, places[i].variable);
        if (directory != NULL)
            return arena_printf(arena, "%s%s", directory, places[i].below);
    }
    return arena_printf(arena, "%s/.cache/huggingface/hub", home_directory());
}

const char *hub_cache_folder(struct arena *arena, const char *id)
{
    const char *slash = strchr(id, '/');
    return arena_printf(arena, "%s/%s%.*s%s%s", hub_cache_directory(arena), HUB_CACHE_PREFIX, (int)strcspn(id, "/"), id,
                        slash != NULL ? "--" : "", slash != NULL ? slash + 1 : "");
}

const char *hub_cache_blob(struct arena *arena, const char *id, const char *hash)
{
    const char *path = arena_printf(arena, "%s/blobs/%s", hub_cache_folder(arena, id), hash);
    return local_kind(path) == LOCATION_FILE ? path : NULL;
}
