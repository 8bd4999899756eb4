#include "fs/cli/server_sandbox.h"

#include "base/sandbox.h"
#include "formats/huggingface/hub_cache_paths.h"
#include "formats/location_local.h"
#include "formats/source.h"
#include "remote/store.h"

#include <linux/capability.h>
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

static const char *const *readable_paths(const struct checkpoint *checkpoint, const struct options *options,
                                         struct arena *arena)
{
    enum { OTHERS = 4 };
    const char **paths = arena_array(arena, options->asked.count + OTHERS, sizeof *paths);
    size_t count = 0;
    add_path(paths, &count, checkpoint->path, arena);
    add_path(paths, &count, hub_cache_directory(arena), arena);
    for (size_t i = 0; i < options->asked.count; i++)
        if (options->asked.items[i].row->names_input)
            add_path(paths, &count, path_of_value(options->asked.items[i].value, arena), arena);
    return paths;
}

int open_server_paths(const struct checkpoint *checkpoint, const struct options *options)
{
    bool opens_others = options->open.follow_links || options->library || checkpoint->plan != NULL;
    if (source_any_remote() || opens_others)
        return 0;
    struct arena *arena = arena_new();
    bool stores = options->content.keep != KEEP_NONE; /* asking for the store makes its directory */
    const char *const writable[] = {stores ? store_directory() : NULL, NULL};
    int paths = sandbox_open_paths(&(struct sandbox_paths){readable_paths(checkpoint, options, arena), writable});
    arena_free(arena);
    return paths;
}

void enter_server_sandbox(int paths, const struct options *options, const char *mountpoint, uint64_t capabilities)
{
    struct arena *arena = arena_new();
    const char *slash = strrchr(mountpoint, '/');
    sandbox_enter(&(struct sandbox){
        .network = source_any_remote(),
        .capabilities = capabilities | (options->mount.session.no_passthrough ? 0 : 1ULL << CAP_SYS_ADMIN),
        .paths = paths,
        .emptied = slash == mountpoint ? "/" : arena_strndup(arena, mountpoint, (size_t)(slash - mountpoint)),
    });
    if (!source_any_remote())
        sandbox_clear_environment(NULL);
    arena_free(arena);
}
