#include "sources/paths.h"

#include "base/text.h"

#include <limits.h>
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

bool hub_name_fits(const char *text, size_t length, size_t most_slashes)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    bool begins = true;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '/' && (begins || most_slashes-- == 0))
            return false;
        bool known = text[i] != '\0' && strchr(letters, text[i]) != NULL;
        if (text[i] != '/' && (!known || (begins && text[i] == '.')))
            return false;
        begins = text[i] == '/';
    }
    return !begins;
}

/* Returns the model of a cache folder, ORG/NAME for models--ORG--NAME; NULL if the folder holds no model. */
static const char *model_of_folder(struct arena *arena, const char *cache, const char *folder)
{
    if (!text_starts_with(folder, HUB_CACHE_PREFIX) ||
        local_kind(arena_printf(arena, "%s/%s/snapshots", cache, folder)) != LOCATION_FOLDER)
        return NULL;
    const char *id = folder + strlen(HUB_CACHE_PREFIX), *separator = strstr(id, "--");
    if (separator != NULL)
        id = arena_printf(arena, "%.*s/%s", (int)(separator - id), id, separator + strlen("--"));
    return hub_name_fits(id, strlen(id), 1) ? id : NULL;
}

void hub_cache_each(void (*each)(void *context, const char *id), void *context)
{
    struct error error;
    struct location_list list;
    const char *id;
    struct arena *arena = arena_new();
    const char *cache = hub_cache_directory(arena);
    struct location *location = location_open(cache, LOCATION_INSIDE, NULL, &error);
    if (location != NULL && location_list(location, "", arena, &list, &error))
        for (size_t i = 0; i < list.count; i++)
            if ((id = model_of_folder(arena, cache, list.entries[i].name)) != NULL)
                each(context, id);
    location_close(location);
    arena_free(arena);
}

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
