#include "fs/cli/server_sandbox.h"

#include "base/sandbox.h"
#include "formats/source.h"

#include <linux/capability.h>
#include <string.h>

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
