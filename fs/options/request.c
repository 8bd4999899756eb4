#include "fs/options/options.h"

#include "formats/huggingface/hub_cache.h"
#include "sources/paths.h"

#include <inttypes.h>
#include <string.h>

void request_add(struct options *options, const struct option_row *row, const char *value)
{
    struct asked_options *asked = &options->asked;
    struct asked_option *longer = arena_array(options->arena, asked->count + 1, sizeof *longer);
    size_t at = asked->count;
    while (at > 0 && asked->items[at - 1].row > row)
        at--;
    for (size_t i = 0; i < asked->count; i++)
        longer[i + (i >= at)] = asked->items[i];
    longer[at] = (struct asked_option){row, value};
    *asked = (struct asked_options){longer, asked->count + 1};
}

static void add_file(struct buffer *text, const struct location *location, const char *path, const char *name,
                     struct timespec *newest)
{
    struct source_identity identity;
    bool inside;
    if (!location_identify(location, path, &identity, &inside))
        return;
    buffer_printf(text, "  %s %" PRIu64 " %" PRId64 ".%09ld\n", name, identity.size, (int64_t)identity.mtime.tv_sec,
                  identity.mtime.tv_nsec);
    *newest = file_time_later(*newest, identity.mtime);
}

/* Returns the path of the file or model that a value names; NULL if it names none. */
static const char *find_path(const char *value, struct arena *arena)
{
    const char *colon = strrchr(value, ':'), *at = strchr(value, '@');
    const char *cut = colon != NULL ? arena_strndup(arena, value, (size_t)(colon - value)) : value;
    struct error unused;
    if (local_kind(value) != LOCATION_NOTHING)
        return value;
    if (local_kind(cut) != LOCATION_NOTHING)
        return cut;
    if (at != NULL)
        return hub_cache_find(arena, arena_strndup(arena, value, (size_t)(at - value)), at + 1, LOCATION_FOLLOW,
                              &unused);
    return hub_cache_find(arena, cut, NULL, LOCATION_FOLLOW, &unused);
}

static void add_input(struct buffer *text, const char *value, struct timespec *newest)
{
    struct arena *arena = arena_new();
    struct error unused;
    struct location_list list = {0};
    const char *path = find_path(value, arena), *file = NULL;
    struct location *location = path != NULL ? location_open(path, LOCATION_FOLLOW, &file, &unused) : NULL;
    if (file != NULL)
        add_file(text, location, file, "", newest);
    else if (location != NULL)
        location_list(location, "", arena, &list, &unused);
    for (size_t i = 0; i < list.count; i++)
        add_file(text, location, list.entries[i].name, list.entries[i].name, newest);
    location_close(location);
    arena_free(arena);
}

void request_finish(struct options *options)
{
    struct buffer text = {0};
    struct file_request request = {0};
    for (size_t i = 0; i < options->asked.count; i++) {
        const struct asked_option *asked = &options->asked.items[i];
        const char *value = asked->value != NULL ? asked->value : "";
        buffer_printf(&text, "%s=%s\n", asked->row->name, value);
        if (asked->row->names_input)
            add_input(&text, value, &request.newest);
    }
    if (text.length > 0)
        request.text = arena_strndup(options->arena, (const char *)text.bytes, text.length);
    buffer_free(&text);
    options->content.file_request = request;
}

static void close_source(void *context)
{
    source_close(*(struct source **)context);
}

struct source *const *request_open_files(const struct options *options, struct arena *arena, size_t *ret_count)
{
    struct source **sources = arena_array(arena, options->asked.count + 1, sizeof(struct source *));
    struct error unused;
    *ret_count = 0;
    for (size_t i = 0; i < options->asked.count; i++) {
        const struct asked_option *asked = &options->asked.items[i];
        const char *path = asked->row->names_input ? find_path(asked->value, arena) : NULL;
        struct source *source =
            path != NULL && local_kind(path) == LOCATION_FILE ? location_open_file(path, &unused) : NULL;
        if (source == NULL)
            continue;
        arena_on_free(arena, close_source, arena_copy(arena, &source, sizeof(struct source *)));
        sources[(*ret_count)++] = source;
    }
    return sources;
}
