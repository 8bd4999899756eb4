#include "fs/cli/sandbox_paths.h"

#include "remote/credentials.h"
#include "remote/store_directory.h"
#include "sources/location.h"
#include "sources/paths.h"

#include <nettle/sha2.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void path_list_add(struct path_list *list, const char *path)
{
    list->items = arena_grow(list->arena, list->items, list->count, sizeof *list->items);
    list->items[list->count++] = path;
}

void path_list_add_all(struct path_list *list, const char *const *paths)
{
    for (; *paths != NULL; paths++)
        path_list_add(list, *paths);
}

const char *const *path_list_end(struct path_list *list)
{
    path_list_add(list, NULL);
    return list->items;
}

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

void runtime_paths_prepare(bool network)
{
    name_home();
    tzset();
    if (network)
        location_load_library();
}

const char *const *runtime_paths(bool network, struct arena *arena)
{
    struct path_list paths = {.arena = arena};
    path_list_add_all(&paths, local_files);
    if (network) {
        path_list_add_all(&paths, network_files);
        path_list_add_all(&paths, credential_files(arena));
    }
    return path_list_end(&paths);
}

struct record_file open_records(int flags, const char *const *sources, size_t n, const struct options *options)
{
    struct record_file file = {.descriptor = -1};
    struct sha256_ctx hash;
    struct arena *arena = arena_new();
    sha256_init(&hash);
    for (size_t i = 0; i < n; i++) {
        const char *real = local_real_path(sources[i], arena), *name = real != NULL ? real : sources[i];
        sha256_update(&hash, strlen(name) + 1, (const uint8_t *)name);
    }
    sha256_digest(&hash, RECORD_KEY, file.scope);
    arena_free(arena);
    if (options->content.keep == KEEP_SIZES)
        file.descriptor = store_open_records(flags);
    return file;
}
