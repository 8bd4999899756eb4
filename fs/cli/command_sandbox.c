#include "fs/cli/command_sandbox.h"

#include "base/sandbox.h"
#include "formats/huggingface/hub_cache_paths.h"
#include "formats/location_local.h"
#include "formats/source.h"
#include "remote/store.h"
#include "remote/store_directory.h"

#include <string.h>

/* Returns the folder of a path, or of the repository in a hub cache whose snapshot the path is in. */
static const char *folder_of(const char *path, struct arena *arena)
{
    const char *snapshots = strstr(path, "/snapshots/");
    const char *slash = strrchr(path, '/');
    const char *end = snapshots != NULL ? snapshots : local_kind(path) == LOCATION_FILE ? slash : path + strlen(path);
    return end == path ? "/" : arena_strndup(arena, path, (size_t)(end - path));
}

static void add_path(const char **paths, size_t *count, const char *path, struct arena *arena)
{
    const char *whole = path != NULL ? local_real_path(path, arena) : NULL;
    if (whole != NULL)
        paths[(*count)++] = folder_of(whole, arena);
}

/* Returns the value of an option without what may follow the path of a file: "DIR:SCALE". */
static const char *path_of_value(const char *value, struct arena *arena)
{
    const char *colon = strrchr(value, ':');
    return colon == NULL || local_kind(value) != LOCATION_NOTHING
               ? value
               : arena_strndup(arena, value, (size_t)(colon - value));
}

static const char *const *readable_paths(const struct checkpoint *const *checkpoints, size_t n,
                                         const struct options *options, struct arena *arena)
{
    enum { OTHERS = 2 };
    size_t count = 0;
    while (sandbox_system_paths[count] != NULL)
        count++;
    const char **paths = arena_array(arena, count + n + options->asked.count + OTHERS, sizeof *paths);
    memcpy(paths, sandbox_system_paths, count * sizeof *paths);
    for (size_t i = 0; i < n; i++)
        add_path(paths, &count, checkpoints[i]->path, arena);
    add_path(paths, &count, hub_cache_directory(arena), arena);
    for (size_t i = 0; i < options->asked.count; i++)
        if (options->asked.items[i].row->names_input)
            add_path(paths, &count, path_of_value(options->asked.items[i].value, arena), arena);
    return paths;
}

/* Adds what must be writable to write to a destination: a file or a device itself, a directory with all below, and the
 * folder of a file, which may be new or be replaced. */
static void add_writable(const char **paths, size_t *count, const char *destination, struct arena *arena)
{
    enum location_kind kind = local_kind(destination);
    const char *real = kind != LOCATION_NOTHING ? local_real_path(destination, arena) : NULL;
    const char *place = real != NULL ? real : destination, *slash = strrchr(place, '/');
    if (kind != LOCATION_NOTHING)
        paths[(*count)++] = place;
    if (kind == LOCATION_NOTHING || kind == LOCATION_FILE)
        paths[(*count)++] = slash != NULL ? arena_strndup(arena, place, (size_t)(slash - place) + 1) : ".";
}

int open_command_paths(const struct checkpoint *const *checkpoints, size_t n, const struct options *options,
                       const char *destination)
{
    bool opens_others = options->open.follow_links || options->library || source_any_remote();
    for (size_t i = 0; i < n; i++)
        opens_others |= checkpoints[i]->plan != NULL;
    if (opens_others)
        return 0;
    struct arena *arena = arena_new();
    /* Asking for the store makes its directory. */
    const char *writable[4] = {NULL}, *store = options->content.keep != KEEP_NONE ? store_directory() : NULL;
    size_t count = 0;
    if (store != NULL)
        writable[count++] = store;
    if (destination != NULL)
        add_writable(writable, &count, destination, arena);
    int paths = sandbox_open_paths(&(struct sandbox_paths){readable_paths(checkpoints, n, options, arena), writable,
                                                           sandbox_system_devices, NULL});
    arena_free(arena);
    return paths;
}

void confine_command(const struct checkpoint *const *checkpoints, size_t n, const struct options *options,
                     const char *destination)
{
    sandbox_restrict_paths(open_command_paths(checkpoints, n, options, destination));
}

void confine_to_source(const struct checkpoint *checkpoint, const struct options *options)
{
    confine_command(&checkpoint, 1, options, NULL);
}
