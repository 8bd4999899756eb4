#include "formats/huggingface/hub_cache.h"

#include "base/text.h"
#include "formats/location.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_REVISION = 512 };

static const char folder_prefix[] = "models--";

/* Cuts "/" and "/." off the end, which say nothing. */
static void cut_dots(char *path)
{
    size_t length = strlen(path);
    while (length > 1 && (path[length - 1] == '/' || (path[length - 1] == '.' && path[length - 2] == '/')))
        path[--length] = '\0';
}

/* The path without links but in its last component, which is neither "." nor "..". NULL where it does not exist. */
static char *absolute_path(struct arena *arena, const char *spelled)
{
    char real[PATH_MAX];
    char *path = arena_strdup(arena, spelled);
    cut_dots(path);
    const char *last = basename(arena_strdup(arena, path));
    if (strcmp(last, ".") == 0 || strcmp(last, "..") == 0 || strcmp(last, "/") == 0)
        return realpath(path, real) != NULL ? arena_strdup(arena, real) : NULL;
    if (realpath(dirname(arena_strdup(arena, path)), real) == NULL)
        return NULL;
    return arena_printf(arena, "%s/%s", strcmp(real, "/") == 0 ? "" : real, last);
}

static bool is_directory(const char *path)
{
    struct stat identity;
    return stat(path, &identity) == 0 && S_ISDIR(identity.st_mode);
}

const char *hub_cache_model_name(struct arena *arena, const char *directory, bool *ret_is_snapshot)
{
    char *path = absolute_path(arena, directory);
    *ret_is_snapshot = false;
    if (path == NULL || strcmp(path, "/") == 0)
        return "model";
    const char *name = strrchr(path, '/') + 1;
    const char *snapshots = dirname(arena_strdup(arena, path)), *folder = dirname(arena_strdup(arena, snapshots));
    const char *folder_name = strrchr(folder, '/') + 1;
    if (strcmp(strrchr(snapshots, '/') + 1, "snapshots") != 0 || !text_starts_with(folder_name, folder_prefix))
        return name;
    *ret_is_snapshot = true;
    const char *organization = folder_name + strlen(folder_prefix), *separator = strstr(organization, "--");
    return separator != NULL ? separator + 2 : organization;
}

static const char *home_directory(void)
{
    const char *home = getenv("HOME");
    if (home != NULL && *home != '\0')
        return home;
    const struct passwd *user = getpwuid(getuid());
    return user != NULL ? user->pw_dir : "/";
}

/* The directory that an environment variable names, a leading "~" expanded; NULL where it names none. */
static const char *directory_from_environment(struct arena *arena, const char *variable)
{
    const char *value = getenv(variable);
    if (value == NULL || *value == '\0')
        return NULL;
    bool in_home = value[0] == '~' && (value[1] == '/' || value[1] == '\0');
    return in_home ? arena_printf(arena, "%s%s", home_directory(), value + 1) : value;
}

static const char *cache_directory(struct arena *arena)
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

/* Whether the text consists of one or several components of the characters that names on the hub have, none of which
 * begins with a dot. */
static bool is_hub_name(const char *text, size_t length, size_t most_slashes)
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

/* The revision that refs/NAME stands for. With NULL and errno ENOENT: there is no such file. */
static const char *read_ref(struct arena *arena, const char *folder, const char *name, struct error *error)
{
    char text[MAX_REVISION + 1];
    const char *path = arena_printf(arena, "%s/refs/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t length = fd >= 0 ? read(fd, text, MAX_REVISION) : -1;
    int failure = errno;
    if (fd >= 0)
        close(fd);
    if (length < 0) {
        error_set_errno(error, failure, "%s", path);
        errno = failure;
        return NULL;
    }
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
        length--;
    if (!is_hub_name(text, (size_t)length, 0)) {
        error_set(error, "%s: holds no revision", path);
        errno = EINVAL;
        return NULL;
    }
    return arena_strndup(arena, text, (size_t)length);
}

static const char *only_snapshot(struct arena *arena, const char *folder, struct error *error)
{
    const char *snapshots = arena_printf(arena, "%s/snapshots", folder), *const * names;
    size_t n_names;
    struct location *location = location_of_directory(snapshots, error);
    bool listed = location != NULL && location_names(location, "", arena, &names, &n_names, error);
    if (!listed)
        error_prefix(error, "%s", snapshots);
    else if (n_names == 0)
        error_set(error, "%s: there is no snapshot", folder);
    else if (n_names > 1)
        error_set(error, "%s: there is no refs/main, and %zu snapshots (%s, %s ...): name the directory of one", folder,
                  n_names, names[0], names[1]);
    location_close(location);
    return listed && n_names == 1 ? names[0] : NULL;
}

/* The snapshot of a revision: the name of a branch, tag or commit; NULL: main, or the only one. */
static const char *find_snapshot(struct arena *arena, const char *folder, const char *revision, struct error *error)
{
    const char *commit = read_ref(arena, folder, revision ? revision : "main", error);
    if (commit == NULL && errno != ENOENT && errno != EISDIR)
        return NULL;
    if (commit == NULL)
        commit = revision != NULL ? revision : only_snapshot(arena, folder, error);
    if (commit == NULL)
        return NULL;
    const char *snapshot = arena_printf(arena, "%s/snapshots/%s", folder, commit);
    if (is_directory(snapshot))
        return snapshot;
    error_set(error, "%s: there is no snapshot of the revision %s", folder, revision ? revision : commit);
    return NULL;
}

/* The snapshot for ORG/NAME or ORG/NAME@REVISION, which has been looked for as a path already. */
static const char *find_repository(struct arena *arena, const char *id, size_t length, const char *revision,
                                   struct error *error)
{
    const char *slash = memchr(id, '/', length), *cache = cache_directory(arena);
    const char *folder = arena_printf(arena, "%s/%s%.*s--%.*s", cache, folder_prefix, (int)(slash - id), id,
                                      (int)(id + length - slash - 1), slash + 1);
    if (is_directory(folder))
        return find_snapshot(arena, folder, revision, error);
    error_set(error,
              "%.*s: no such file or directory, nor is there a %s in the hub cache; 'hf download %.*s' fetches it",
              (int)length, id, folder, (int)length, id);
    return NULL;
}

const char *hub_cache_resolve(struct arena *arena, const char *path, struct error *error)
{
    struct stat identity;
    if (stat(path, &identity) == 0) {
        char *folder = S_ISDIR(identity.st_mode) ? absolute_path(arena, path) : NULL;
        bool is_repository = folder != NULL && text_starts_with(strrchr(folder, '/') + 1, folder_prefix) &&
                             is_directory(arena_printf(arena, "%s/snapshots", folder));
        return is_repository ? find_snapshot(arena, folder, NULL, error) : path;
    }
    size_t length = strcspn(path, "@");
    const char *revision = path[length] == '@' ? path + length + 1 : NULL;
    bool is_name = is_hub_name(path, length, 1), is_id = is_name && memchr(path, '/', length) != NULL;
    if (is_name && !is_id && revision == NULL) { /* from before models had owners: gpt2 */
        const char *folder = arena_printf(arena, "%s/%s%s", cache_directory(arena), folder_prefix, path);
        if (is_directory(folder))
            return find_snapshot(arena, folder, NULL, error);
        if (strchr(path, '.') != NULL)
            return path;
        error_set(error, "%s: no such file or directory, nor is there a %s in the hub cache", path, folder);
        return NULL;
    }
    if (!is_id || (revision != NULL && !is_hub_name(revision, strlen(revision), MAX_REVISION)))
        return path;
    return find_repository(arena, path, length, revision, error);
}

const char *hub_cache_find(struct arena *arena, const char *id, const char *revision, struct error *error)
{
    if (!is_hub_name(id, strlen(id), 1) ||
        (revision != NULL && !is_hub_name(revision, strlen(revision), MAX_REVISION))) {
        error_set(error, "'%.200s' is not the name of a repository", id);
        return NULL;
    }
    const char *slash = strchr(id, '/');
    const char *folder =
        arena_printf(arena, "%s/%s%.*s%s%s", cache_directory(arena), folder_prefix, (int)strcspn(id, "/"), id,
                     slash != NULL ? "--" : "", slash != NULL ? slash + 1 : "");
    if (is_directory(folder))
        return find_snapshot(arena, folder, revision, error);
    error_set(error, "%s: there is no %s in the hub cache; 'hf download %s' fetches it", id, folder, id);
    return NULL;
}

/* What a folder of the cache holds, NULL where that is no model: models--ORG--NAME is of ORG/NAME. */
static const char *model_of_folder(struct arena *arena, const char *cache, const char *folder)
{
    if (!text_starts_with(folder, folder_prefix) ||
        !is_directory(arena_printf(arena, "%s/%s/snapshots", cache, folder)))
        return NULL;
    const char *id = folder + strlen(folder_prefix), *separator = strstr(id, "--");
    if (separator != NULL)
        id = arena_printf(arena, "%.*s/%s", (int)(separator - id), id, separator + strlen("--"));
    return is_hub_name(id, strlen(id), 1) ? id : NULL;
}

void hub_cache_each(void (*each)(void *context, const char *id), void *context)
{
    struct error error;
    size_t n_names;
    const char *const *names, *id;
    struct arena *arena = arena_new();
    const char *cache = cache_directory(arena);
    struct location *location = location_of_directory(cache, &error);
    if (location != NULL && location_names(location, "", arena, &names, &n_names, &error))
        for (size_t i = 0; i < n_names; i++)
            if ((id = model_of_folder(arena, cache, names[i])) != NULL)
                each(context, id);
    location_close(location);
    arena_free(arena);
}
