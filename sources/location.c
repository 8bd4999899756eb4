#include "sources/location_scheme.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

struct location {
    const struct location_ops *ops;
    void *context;
};

struct location *location_new(const struct location_ops *ops, void *context)
{
    struct location *location = memory_alloc(sizeof *location);
    *location = (struct location){ops, context};
    return location;
}

const char *location_shown(const char *text, struct arena *arena)
{
    if (!text_starts_with(text, "http://") && !text_starts_with(text, "https://"))
        return arena_strdup(arena, text);
    const char *host = strstr(text, "://") + strlen("://");
    size_t length = strcspn(text, "?#");
    const char *user = memchr(host, '@', strcspn(host, "/?#"));
    return user != NULL
               ? arena_printf(arena, "%.*s%.*s", (int)(host - text), text, (int)(text + length - user - 1), user + 1)
               : arena_strndup(arena, text, length);
}

const char *location_model(const struct location *location, bool *ret_is_repository)
{
    *ret_is_repository = false;
    return location->ops->name != NULL ? location->ops->name(location->context, ret_is_repository) : NULL;
}

bool location_snapshot(const struct location *location, struct location_snapshot *ret_snapshot)
{
    return location->ops->snapshot != NULL && location->ops->snapshot(location->context, ret_snapshot);
}

const char *location_blob(const struct location *location, const char *path)
{
    return location->ops->blob != NULL ? location->ops->blob(location->context, path) : NULL;
}

struct location *location_folder(const struct location *location, const char *folder, const char *name,
                                 struct error *error)
{
    return location->ops->folder(location->context, folder, name, error);
}

void location_close(struct location *location)
{
    if (location == NULL)
        return;
    location->ops->close(location->context);
    free(location);
}

struct location_listing {
    struct arena *arena;
    struct location_entry *entries;
    size_t count;
};

void location_add(struct location_listing *listing, const char *name, enum location_kind kind)
{
    listing->entries = memory_grow(listing->entries, listing->count, sizeof *listing->entries);
    listing->entries[listing->count++] = (struct location_entry){arena_strdup(listing->arena, name), kind};
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct location_entry *)a)->name, ((const struct location_entry *)b)->name);
}

bool location_list(const struct location *location, const char *folder, struct arena *arena,
                   struct location_list *ret_list, struct error *error)
{
    struct location_listing listing = {.arena = arena};
    bool listed = location->ops->list(location->context, folder, &listing, error);
    if (listing.count > 0)
        qsort(listing.entries, listing.count, sizeof *listing.entries, compare_entries);
    *ret_list = (struct location_list){arena_copy(arena, listing.entries, listing.count * sizeof *listing.entries),
                                       listing.count};
    free(listing.entries);
    return listed;
}

bool location_list_has(const struct location_list *list, const char *name)
{
    const struct location_entry wanted = {.name = name};
    return list->count > 0 && bsearch(&wanted, list->entries, list->count, sizeof wanted, compare_entries) != NULL;
}

enum location_kind location_kind(const struct location *location, const char *path)
{
    return location->ops->kind(location->context, path);
}

bool location_identify(const struct location *location, const char *path, struct source_identity *ret_identity,
                       bool *ret_inside)
{
    return location->ops->identify(location->context, path, ret_identity, ret_inside);
}

struct source *location_source(const struct location *location, const char *path, struct error *error)
{
    return location_source_as(location, path, path, error);
}

struct source *location_source_as(const struct location *location, const char *path, const char *name,
                                  struct error *error)
{
    return location->ops->open(location->context, path, name, error);
}
