#include "fs/cli/sandbox.h"

#include "base/sandbox.h"
#include "base/text.h"
#include "fs/cli/sandbox_paths.h"
#include "fs/cli/source_roots.h"
#include "remote/store.h"
#include "remote/store_directory.h"
#include "sources/paths.h"

#include <fcntl.h>
#include <string.h>

static const char *const devices[] = {"/dev/null", "/dev/random", "/dev/urandom", NULL};

static const char devices_folder[] = "/dev", top_folder[] = "/";

/* What a command may open. */
struct readable {
    struct path_list files, listed; /* to read; to list alone */
};

/* Adds the sources' folders, and each source itself: a descriptor's file may have no name any more. The folders of
 * /dev/stdin and of a file in the root directory are listed alone. */
static void add_sources(struct readable *readable, const struct command_needs *needs, const struct options *options)
{
    const char *const *roots =
        source_roots(needs->sources, needs->n_sources, needs->is_library, options, readable->files.arena);
    if (roots_are_at_top(roots))
        path_list_add(&readable->listed, top_folder);
    for (; *roots != NULL; roots++)
        path_list_add(strcmp(*roots, devices_folder) == 0 ? &readable->listed : &readable->files, *roots);
    for (size_t i = 0; i < needs->n_sources; i++)
        path_list_add(&readable->files, needs->sources[i]);
}

static struct readable readable_paths(const struct command_needs *needs, const struct options *options, bool network,
                                      struct arena *arena)
{
    struct readable readable = {{arena}, {arena}};
    if (options->open.follow_links)
        path_list_add(&readable.files, top_folder);
    path_list_add_all(&readable.files, runtime_paths(network, arena));
    add_sources(&readable, needs, options);
    path_list_end(&readable.files);
    path_list_end(&readable.listed);
    return readable;
}

/* Returns the folder of a path; slashes at its end do not count. */
static const char *folder_of(const char *path, struct arena *arena)
{
    const char *slash = text_last(path, text_trimmed_length(path), '/');
    return slash != NULL ? arena_strndup(arena, path, (size_t)(slash - path) + 1) : ".";
}

/* Adds what must be writable to write to a destination: a file or a device itself, a directory with all below, and the
 * folder of a file, which may be new or be replaced. */
static void add_destination(struct path_list *paths, const char *destination, bool beside)
{
    enum location_kind kind = local_kind(destination);
    const char *real = kind != LOCATION_NOTHING ? local_real_path(destination, paths->arena) : NULL;
    const char *place = real != NULL ? real : destination;
    if (kind != LOCATION_NOTHING)
        path_list_add(paths, place);
    if (kind == LOCATION_NOTHING || kind == LOCATION_FILE)
        path_list_add(paths, folder_of(place, paths->arena));
    if (beside)
        path_list_add(paths, folder_of(destination, paths->arena));
}

static const char *const *writable_paths(const struct command_needs *needs, const char *store, struct arena *arena)
{
    struct path_list paths = {.arena = arena};
    if (store != NULL)
        path_list_add(&paths, store);
    if (needs->destination != NULL)
        add_destination(&paths, needs->destination, needs->writes_beside);
    for (const char *const *path = needs->removed; path != NULL && *path != NULL; path++)
        add_destination(&paths, *path, true);
    if (needs->fills_hub_cache && store_make_folder(hub_cache_directory(arena)))
        path_list_add_all(&paths, hub_cache_roots(arena));
    return path_list_end(&paths);
}

void enter_command_sandbox(const struct command_needs *needs, const struct options *options)
{
    static const char *const of_terminals[] = {"TERM=", "NO_COLOR=", "LISTEN_", NULL};
    static const uint16_t no_ports[] = {0};
    struct arena *arena = arena_new();
    bool network = sources_need_network(needs->sources, needs->n_sources, options);
    bool uses_store = network || needs->uses_store || options->content.keep > KEEP_NONE;
    bool writes = uses_store || needs->destination != NULL || needs->removed != NULL || needs->fills_hub_cache;
    runtime_paths_prepare(network);
    if (needs->listens) { /* and may write to the store: a scope would bind nothing */
        const struct record_file records = open_records(O_RDWR, NULL, 0, options);
        records_use(&records, true);
    }
    const struct readable readable = readable_paths(needs, options, network, arena);
    int paths = sandbox_open_paths(&(struct sandbox_paths){
        .readable = readable.files.items,
        .listed = readable.listed.items,
        /* Asking for the store makes its directory. */
        .writable = writable_paths(needs, uses_store ? store_directory() : NULL, arena),
        .devices = devices,
        .ports = network ? source_ports(needs->sources, needs->n_sources, options, arena) : no_ports,
        .listens = needs->listens,
        .moves_names = needs->writes_beside,
    });
    sandbox_enter(&(struct sandbox){
        .role = SANDBOX_READER,
        .uses = (network ? SANDBOX_CONNECTS : 0) | (needs->listens ? SANDBOX_LISTENS : 0),
        .capabilities = writes || needs->listens ? sandbox_copying : sandbox_reading,
        .paths = paths,
    });
    if (!network)
        sandbox_clear_environment(of_terminals);
    arena_free(arena);
}
