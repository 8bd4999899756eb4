#include "fs/cli/sandbox.h"

#include "base/opener.h"
#include "base/sandbox.h"
#include "fs/cli/sandbox_paths.h"
#include "fs/cli/source_roots.h"
#include "fs/mount/processes.h"
#include "remote/store.h"
#include "remote/store_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static const char *const devices[] = {"/dev/fuse", "/dev/null", "/dev/random", "/dev/urandom", NULL};

static int open_paths(const char *const *sources, size_t n, const struct options *options, bool network,
                      struct arena *arena)
{
    /* Asking for the store makes its directory. */
    const char *store = network || options->content.keep > KEEP_NONE ? store_directory() : NULL;
    static const uint16_t no_ports[] = {0};
    return sandbox_open_paths(&(struct sandbox_paths){
        .readable = runtime_paths(network, arena),
        .writable = (const char *const[]){store, NULL},
        .devices = devices,
        .ports = network ? source_ports(sources, n, options, arena) : no_ports,
    });
}

bool enter_server_sandbox(const char *const *sources, size_t n, const struct options *options, struct error *error)
{
    struct arena *arena = arena_new();
    bool network = sources_need_network(sources, n, options);
    runtime_paths_prepare(network);
    int paths = open_paths(sources, n, options, network, arena);
    bool is_library = n > 1 || options->library;
    const char *const *places = source_roots(sources, n, is_library, options, arena);
    const struct record_file written = open_records(O_WRONLY, sources, n, options);
    const struct opener_roots roots = {places, roots_are_at_top(places), options->open.follow_links,
                                       source_descriptors(sources, n, arena), &written};
    bool started = opener_start(&roots);
    if (!started)
        error_set_errno(error, errno, "the process that opens files cannot be started");
    if (written.descriptor >= 0) {
        close(written.descriptor);
        const struct record_file read = open_records(O_RDONLY, sources, n, options);
        records_use(&read, false);
    }
    if (started && !network)
        sandbox_clear_environment(NULL);
    if (started) {
        unsigned layers = sandbox_enter(
            &(struct sandbox){.role = SANDBOX_READER, .uses = network ? SANDBOX_CONNECTS : 0, .paths = paths});
        confinement_show(
            &(struct confinement){.layers = layers, .network = network, .opens_all = options->open.follow_links});
    }
    arena_free(arena);
    return started;
}
