#include "fs/cli/own_files.h"

#include "formats/location.h"
#include "remote/credentials.h"

#include <pwd.h>
#include <stdlib.h>
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

/* Names the user's directory as the C library would, which reads files for that. */
static void name_home(void)
{
    const char *home = getenv("HOME");
    const struct passwd *user = home == NULL || *home == '\0' ? getpwuid(getuid()) : NULL;
    if (user != NULL)
        setenv("HOME", user->pw_dir, 1);
}

void own_files_prepare(bool network)
{
    name_home();
    tzset();
    if (network)
        location_load_library();
}

static void append(const char **paths, size_t *count, const char *const *more)
{
    for (; *more != NULL; more++)
        paths[(*count)++] = *more;
}

const char *const *own_files(bool network, struct arena *arena)
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
