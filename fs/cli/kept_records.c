#include "fs/cli/kept_records.h"

#include "remote/store_directory.h"
#include "sources/paths.h"

#include <nettle/sha2.h>
#include <string.h>

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
