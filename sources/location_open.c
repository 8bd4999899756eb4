/* The table of location kinds: the first whose prefix begins a text opens it. */
#include "base/text.h"
#include "sources/archive/location.h"
#include "sources/location_scheme.h"
#include "sources/paths.h"

#include <errno.h>

static const struct location_scheme *const schemes[] = {&hub_scheme,  &s3_scheme,     &https_scheme,
                                                        &http_scheme, &ollama_scheme, &local_scheme};

static const struct location_scheme *scheme_of(const char *text)
{
    const struct location_scheme *const *scheme = schemes;
    while (!text_starts_with(text, (*scheme)->prefix))
        scheme++;
    return *scheme;
}

/* Reports whether a location has no files: a server may list nothing, and lack all that is guessed. */
static bool is_empty(const struct location *location)
{
    struct arena *arena = arena_new();
    struct location_list list;
    struct error unused;
    bool found = location_list(location, "", arena, &list, &unused) && list.count == 0;
    arena_free(arena);
    return found;
}

struct location *location_open(const char *text, enum location_links links, const char **ret_file, struct error *error)
{
    bool is_archive;
    struct location *location = archive_location_open(text, ret_file, &is_archive, error);
    if (is_archive)
        return location;
    const struct location_scheme *scheme = scheme_of(text);
    location = scheme->open(text, links, ret_file, error);
    if (*scheme->prefix == '\0')
        return location;
    /* only what a server says is not there may be in an archive: others would be waited for again */
    struct error unused;
    bool may_be_archived = location != NULL ? is_empty(location) : error->code == ENOENT;
    struct location *archived = may_be_archived ? archive_location_above(text, scheme->open, ret_file, &unused) : NULL;
    if (archived != NULL)
        location_close(location);
    return archived != NULL ? archived : location != NULL ? archive_location_of(location, text, error) : NULL;
}

const char *location_real_path(const char *text, struct arena *arena)
{
    return archive_prefix(text) > 0 ? archive_real_path(text, arena) : local_real_path(text, arena);
}

bool location_names_all_ports(const char *text)
{
    const struct location_scheme *scheme = scheme_of(text);
    return scheme->names_all_ports == NULL || scheme->names_all_ports();
}

struct source *location_open_file(const char *text, struct error *error)
{
    const char *file;
    struct source *source = NULL;
    struct location *location = location_open(text, LOCATION_INSIDE, &file, error);
    struct arena *arena = arena_new();
    const char *shown = location_shown(text, arena);
    if (location != NULL && file != NULL)
        source = location_source_as(location, file, shown, error);
    else if (location != NULL)
        error_set(error, "%s: not a regular file", shown);
    arena_free(arena);
    location_close(location);
    return source;
}
