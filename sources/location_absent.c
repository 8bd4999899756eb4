/* Refuses the kinds of locations that need libcurl, for builds without it. */
#include "sources/location_scheme.h"

static struct location *refuse(const char *text, enum location_links links, const char **ret_file, struct error *error)
{
    struct arena *arena = arena_new();
    error_set(error, "%s: this wfs was built without libcurl and reads local files alone", location_shown(text, arena));
    arena_free(arena);
    return NULL;
}

const struct location_scheme https_scheme = {.prefix = "https://", .open = refuse};
const struct location_scheme http_scheme = {.prefix = "http://", .open = refuse};
const struct location_scheme hub_scheme = {.prefix = "hf://", .open = refuse};
const struct location_scheme s3_scheme = {.prefix = "s3://", .open = refuse};

void location_load_library(void)
{
}
