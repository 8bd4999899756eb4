#include "formats/huggingface/hub_cache.h"
#include "sources/archive/location.h"

#include "base/text.h"
#include "formats/format.h"
#include "sources/paths.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REVISION = 512 };

/* Cuts every "/" and "/." off the end: they do not change the path. */
static void cut_dots(char *path)
{
    size_t length = strlen(path);
    while (length > 1 && (path[length - 1] == '/' || (path[length - 1] == '.' && path[length - 2] == '/')))
        path[--length] = '\0';
}

/* Returns the absolute path, with links resolved except in its last component, which is neither "." nor ".."; NULL if
 * it does not exist. */
static const char *absolute_path(struct arena *arena, const char *spelled)
{
    char *path = arena_strdup(arena, spelled);
    cut_dots(path);
    const char *last = basename(arena_strdup(arena, path));
    if (strcmp(last, ".") == 0 || strcmp(last, "..") == 0 || strcmp(last, "/") == 0)
        return location_real_path(path, arena);
    const char *parent = location_real_path(dirname(path), arena);
    return parent != NULL ? arena_printf(arena, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, last) : NULL;
}

static bool is_directory(const char *path)
{
    return local_kind(path) == LOCATION_FOLDER;
}

const char *hub_cache_model_name(struct arena *arena, const char *directory, bool *ret_is_snapshot)
{
    const char *path = absolute_path(arena, directory);
    *ret_is_snapshot = false;
    if (path == NULL || strcmp(path, "/") == 0)
        return "model";
    const char *snapshots = dirname(arena_strdup(arena, path)), *folder = dirname(arena_strdup(arena, snapshots));
    const char *folder_name = text_last_name(folder);
    if (strcmp(text_last_name(snapshots), "snapshots") != 0 || !text_starts_with(folder_name, HUB_CACHE_PREFIX))
        return text_last_name(path);
    *ret_is_snapshot = true;
    const char *organization = folder_name + strlen(HUB_CACHE_PREFIX), *separator = strstr(organization, "--");
    return separator != NULL ? separator + 2 : organization;
}

/* A repository's folder in the cache. Links that leave the folder are refused like links of models. */
struct repository {
    const char *folder;
    const struct location *location;
};

/* Reads the commit in a file of refs. */
static const char *read_ref(struct arena *arena, const struct repository *repository, const char *path,
                            struct error *error)
{
    size_t length;
    struct source *file = location_source(repository->location, path, error);
    char *text = file != NULL ? source_read_text(file, MAX_REVISION, &length, error) : NULL;
    source_close(file);
    if (text == NULL) {
        error_prefix(error, "%s", repository->folder);
        return NULL;
    }
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
        length--;
    const char *revision = hub_name_fits(text, length, 0) ? arena_strndup(arena, text, length) : NULL;
    free(text);
    if (revision == NULL)
        error_set(error, "%s/%s: contains no revision", repository->folder, path);
    return revision;
}

static const char *only_snapshot(struct arena *arena, const struct repository *repository, struct error *error)
{
    struct location_list list = {0};
    bool listed = location_list(repository->location, "snapshots", arena, &list, error);
    if (!listed)
        error_prefix(error, "%s/snapshots", repository->folder);
    else if (list.count == 0)
        error_set(error, "%s: contains no snapshot", repository->folder);
    else if (list.count > 1)
        error_set(error, "%s: no refs/main, and %zu snapshots (%s, %s ...); name the directory of one",
                  repository->folder, list.count, list.entries[0].name, list.entries[1].name);
    return listed && list.count == 1 ? list.entries[0].name : NULL;
}

/* Returns the commit of a revision, which names a branch, tag or commit; NULL: main, or the only snapshot. */
static const char *find_commit(struct arena *arena, const struct repository *repository, const char *revision,
                               struct error *error)
{
    const char *ref = arena_printf(arena, "refs/%s", revision ? revision : "main");
    enum location_kind kind = location_kind(repository->location, ref);
    if (kind == LOCATION_FILE || kind == LOCATION_OTHER)
        return read_ref(arena, repository, ref, error);
    return revision != NULL ? revision : only_snapshot(arena, repository, error);
}

/* Reports whether the repository has the snapshot of a commit. */
static bool check_snapshot(struct arena *arena, const struct repository *repository, const char *commit,
                           const char *revision, struct error *error)
{
    const char *path = arena_printf(arena, "snapshots/%s", commit);
    enum location_kind kind = location_kind(repository->location, path);
    if (kind != LOCATION_FOLDER && kind != LOCATION_LINKED_FOLDER)
        return error_set(error, "%s: no snapshot of the revision %s", repository->folder, revision ? revision : commit);
    const char *name = arena_printf(arena, "%s/%s", repository->folder, path);
    struct location *snapshot = location_folder(repository->location, path, name, error);
    location_close(snapshot);
    return snapshot != NULL;
}

/* Returns the path of a revision's snapshot. */
static const char *find_snapshot(struct arena *arena, const char *folder, const char *revision,
                                 enum location_links links, struct error *error)
{
    struct location *location = location_open(folder, links, NULL, error);
    const struct repository repository = {folder, location};
    const char *commit = location != NULL ? find_commit(arena, &repository, revision, error) : NULL;
    bool found = commit != NULL && check_snapshot(arena, &repository, commit, revision, error);
    location_close(location);
    return found ? arena_printf(arena, "%s/snapshots/%s", folder, commit) : NULL;
}

/* Reports whether a name is a file's rather than a repository's: "quantized/model.gguf". */
static bool is_file_name(const struct format *const *formats, const char *name)
{
    return formats_extension(formats, name) != NULL || text_ends_with(name, ".json") || text_ends_with(name, ".yaml");
}

/* Returns the snapshot for ORG/NAME or ORG/NAME@REVISION, which is not an existing path. */
static const char *find_repository(struct arena *arena, const char *id, size_t length, const char *revision,
                                   const struct format *const *formats, enum location_links links, struct error *error)
{
    const char *slash = memchr(id, '/', length), *cache = hub_cache_directory(arena);
    const char *folder = arena_printf(arena, "%s/%s%.*s--%.*s", cache, HUB_CACHE_PREFIX, (int)(slash - id), id,
                                      (int)(id + length - slash - 1), slash + 1);
    if (is_directory(folder))
        return find_snapshot(arena, folder, revision, links, error);
    if (revision == NULL && is_file_name(formats, id)) {
        error_set_errno(error, ENOENT, "%s", id);
        error_set_code(error, ENOENT);
        return NULL;
    }
    error_set(error,
              "%.*s: no such file or directory, and no %s in the hub cache; 'hf download %.*s' fetches it, hf://%.*s "
              "reads it from the hub",
              (int)length, id, folder, (int)length, id, (int)length, id);
    error_set_code(error, ENOENT);
    return NULL;
}

/* Reports whether a path in an archive, or a URL, is that of a repository's folder. */
static bool is_distant_repository(const char *path)
{
    struct error unused;
    const char *slash = strrchr(path, '/');
    struct location *location = slash != NULL && text_starts_with(slash + 1, HUB_CACHE_PREFIX)
                                    ? location_open(path, LOCATION_INSIDE, NULL, &unused)
                                    : NULL;
    bool is_one = location != NULL && location_kind(location, "snapshots") == LOCATION_FOLDER;
    location_close(location);
    return is_one;
}

const char *hub_cache_resolve(struct arena *arena, const char *path, const struct format *const *formats,
                              enum location_links links, struct error *error)
{
    enum location_kind kind = local_kind(path);
    if (kind == LOCATION_NOTHING && (strstr(path, "://") != NULL || archive_prefix(path) > 0))
        return is_distant_repository(path) ? find_snapshot(arena, path, NULL, links, error) : path;
    if (kind != LOCATION_NOTHING) {
        const char *folder = kind == LOCATION_FOLDER ? absolute_path(arena, path) : NULL;
        bool is_repository = folder != NULL && text_starts_with(text_last_name(folder), HUB_CACHE_PREFIX) &&
                             is_directory(arena_printf(arena, "%s/snapshots", folder));
        return is_repository ? find_snapshot(arena, folder, NULL, links, error) : path;
    }
    size_t length = strcspn(path, "@");
    const char *revision = path[length] == '@' ? path + length + 1 : NULL;
    bool is_name = hub_name_fits(path, length, 1), is_id = is_name && memchr(path, '/', length) != NULL;
    if (is_name && !is_id && revision == NULL) { /* an early model without an owner: gpt2 */
        const char *folder = arena_printf(arena, "%s/%s%s", hub_cache_directory(arena), HUB_CACHE_PREFIX, path);
        if (is_directory(folder))
            return find_snapshot(arena, folder, NULL, links, error);
        if (strchr(path, '.') != NULL)
            return path;
        error_set(error, "%s: no such file or directory, and no %s in the hub cache", path, folder);
        return NULL;
    }
    if (!is_id || (revision != NULL && !hub_name_fits(revision, strlen(revision), MAX_REVISION)))
        return path;
    return find_repository(arena, path, length, revision, formats, links, error);
}

const char *hub_cache_find(struct arena *arena, const char *id, const char *revision, enum location_links links,
                           struct error *error)
{
    if (!hub_name_fits(id, strlen(id), 1) ||
        (revision != NULL && !hub_name_fits(revision, strlen(revision), MAX_REVISION))) {
        error_set(error, "'%.200s' is not a repository name", id);
        return NULL;
    }
    const char *folder = hub_cache_folder(arena, id);
    if (is_directory(folder))
        return find_snapshot(arena, folder, revision, links, error);
    error_set(error, "%s: no %s in the hub cache; 'hf download %s' fetches it", id, folder, id);
    return NULL;
}
