#include "fs/cli/server_sandbox.h"

#include "base/opener.h"
#include "base/sandbox.h"
#include "fs/cli/source_roots.h"
#include "fs/mount/confinement.h"
#include "remote/credentials.h"
#include "remote/store.h"
#include "remote/store_directory.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The table of mounts; the time zone, for the log. */
static const char *const local_files[] = {"/proc", "/etc/localtime", "/usr/share/zoneinfo", NULL};

/* libcurl and what it loads, the resolver, certificates. Single files of /etc: root may read the others, too. */
static const char *const network_files[] = {"/usr/lib",
                                            "/usr/lib64",
                                            "/usr/lib32",
                                            "/usr/local/lib",
                                            "/lib",
                                            "/lib64",
                                            "/nix",
                                            "/usr/share/ca-certificates",
                                            "/usr/local/share/ca-certificates",
                                            "/usr/share/pki",
                                            "/usr/share/p11-kit",
                                            "/etc/ca-certificates",
                                            "/etc/crypto-policies",
                                            "/etc/gnutls",
                                            "/etc/pki",
                                            "/etc/ssl",
                                            "/etc/ld.so.cache",
                                            "/etc/gai.conf",
                                            "/etc/host.conf",
                                            "/etc/hosts",
                                            "/etc/nsswitch.conf",
                                            "/etc/protocols",
                                            "/etc/resolv.conf",
                                            "/etc/services",
                                            "/run/systemd/resolve",
                                            "/run/NetworkManager",
                                            "/run/resolvconf",
                                            NULL};

static const char *const devices[] = {"/dev/fuse", "/dev/null", "/dev/random", "/dev/urandom", NULL};

/* Names the user's directory as the C library would, which reads files for that. */
static void name_home(void)
{
    const char *home = getenv("HOME");
    const struct passwd *user = home == NULL || *home == '\0' ? getpwuid(getuid()) : NULL;
    if (user != NULL)
        setenv("HOME", user->pw_dir, 1);
}

static void append(const char **paths, size_t *count, const char *const *more)
{
    for (; *more != NULL; more++)
        paths[(*count)++] = *more;
}

/* Returns what the server itself may read, in the arena. */
static const char *const *readable_files(bool network, struct arena *arena)
{
    static const size_t most = (sizeof local_files + sizeof network_files) / sizeof(char *);
    const char *const *secrets = network ? credential_files(arena) : NULL;
    size_t count = 0, n_secrets = 0;
    while (secrets != NULL && secrets[n_secrets] != NULL)
        n_secrets++;
    const char **paths = arena_array(arena, most + n_secrets + 1, sizeof *paths);
    append(paths, &count, local_files);
    if (network) {
        append(paths, &count, network_files);
        append(paths, &count, secrets);
    }
    paths[count] = NULL;
    return paths;
}

static int open_paths(const char *const *sources, size_t n, const struct options *options, bool network,
                      struct arena *arena)
{
    /* Asking for the store makes its directory. */
    const char *store = network || options->content.keep != KEEP_NONE ? store_directory() : NULL;
    static const uint16_t no_ports[] = {0};
    return sandbox_open_paths(&(struct sandbox_paths){
        .readable = readable_files(network, arena),
        .writable = (const char *const[]){store, NULL},
        .devices = devices,
        .ports = network ? source_ports(sources, n, options, arena) : no_ports,
    });
}

bool enter_server_sandbox(const char *const *sources, size_t n, const struct options *options, struct error *error)
{
    struct arena *arena = arena_new();
    bool network = sources_need_network(sources, n, options);
    name_home();
    tzset();
    int paths = open_paths(sources, n, options, network, arena);
    const struct opener_roots roots = {source_roots(sources, n, options, arena), options->open.follow_links,
                                       source_descriptors(sources, n, arena)};
    bool started = opener_start(&roots);
    if (!started)
        error_set_errno(error, errno, "the process that opens files cannot be started");
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
