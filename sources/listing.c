#include "sources/listing.h"

#include "base/encodings.h"
#include "base/text.h"
#include "base/text_index.h"
#include "text/json.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A list under construction. */
struct names {
    struct listing *listing;
    struct text_index index; /* of its names */
    struct arena *arena;
};

/* Adds a copy of a name, unless the list has it; false if there are too many. */
static bool add(struct names *names, const char *name)
{
    struct listing *listing = names->listing;
    size_t unused, length = strlen(name);
    if (text_index_find(&names->index, name, length, &unused))
        return true;
    listing->is_too_long = listing->count == LISTING_NAMES;
    if (listing->is_too_long)
        return false;
    listing->names = memory_grow(listing->names, listing->count, sizeof *listing->names);
    listing->names[listing->count] = arena_strdup(names->arena, name);
    text_index_add(&names->index, listing->names[listing->count], length, listing->count);
    listing->count++;
    return true;
}

static bool add_entry(struct names *names, const char *name, bool is_folder)
{
    struct arena *arena = arena_new();
    bool good = add(names, arena_printf(arena, "%s%s", name, is_folder ? "/" : ""));
    arena_free(arena);
    return good;
}

/* Parses [{"name": "model.gguf", "type": "file", ...}, {"name": "sub", "type": "directory"}]. */
static bool parse_json(const char *text, size_t length, struct names *names)
{
    struct error unused;
    struct json_document *document = json_parse(text, length, &unused);
    const struct json *root = document != NULL ? json_root(document) : NULL;
    bool good = json_is(root, JSON_ARRAY);
    for (const struct json *entry = good ? json_first(root) : NULL; good && entry != NULL; entry = json_next(entry)) {
        size_t n_name = 0;
        const char *name = json_string(json_get(entry, "name"), &n_name);
        bool is_folder = json_string_is(json_get(entry, "type"), "directory");
        if (name != NULL && n_name > 0 && strlen(name) == n_name && strchr(name, '/') == NULL)
            good = add_entry(names, name, is_folder);
    }
    json_free(document);
    return good;
}

/* Returns the value of an attribute, decoding &amp;, the only entity that URLs need in HTML. */
static const char *attribute_value(const char *value, size_t length, struct arena *arena)
{
    static const char entity[] = "&amp;";
    char *text = arena_strndup(arena, value, length);
    for (char *place = text; (place = strstr(place, entity)) != NULL; place++)
        memmove(place + 1, place + sizeof entity - 1, strlen(place + sizeof entity - 1) + 1);
    return text;
}

/* Returns the name that a link in a folder leads to, or NULL if it leads elsewhere. */
static const char *name_of_link(const struct uri *folder, const char *link, struct arena *arena)
{
    struct uri uri;
    struct error unused;
    if (!uri_resolve(folder, link, arena, &uri, &unused) || !uri_same_origin(&uri, folder) ||
        !text_starts_with(uri.path, folder->path))
        return NULL;
    const char *rest = uri.path + strlen(folder->path);
    size_t length = strcspn(rest, "/");
    const char *name = percent_decode_name(rest, length, arena);
    if (name == NULL || (rest[length] == '/' && rest[length + 1] != '\0'))
        return NULL;
    return rest[length] == '/' ? arena_printf(arena, "%s/", name) : name;
}

/* Adds the name that a link leads to, if it is one of the folder. */
static bool add_link(struct names *names, const struct uri *folder, const char *link, size_t length)
{
    struct arena *arena = arena_new();
    const char *name = name_of_link(folder, attribute_value(link, length, arena), arena);
    bool good = name == NULL || add(names, name);
    arena_free(arena);
    return good;
}

static bool parse_html(const char *text, size_t length, const struct uri *folder, struct names *names)
{
    static const char attribute[] = "href=";
    enum { LONGEST = 2048 };
    const char *end = text + length;
    bool good = true;
    size_t n_links = 0;
    for (const char *at = text; good && at + sizeof attribute < end; at++) {
        if (strncasecmp(at, attribute, sizeof attribute - 1) != 0)
            continue;
        const char *value = at + sizeof attribute, *close = NULL;
        char quote = value[-1];
        if ((quote == '"' || quote == '\'') && value < end)
            close = memchr(value, quote, (size_t)(end - value) < LONGEST ? (size_t)(end - value) : LONGEST);
        names->listing->is_too_long = close != NULL && n_links++ == LISTING_LINKS;
        if (close != NULL)
            good = !names->listing->is_too_long && add_link(names, folder, value, (size_t)(close - value));
    }
    return good;
}

bool listing_parse(const char *text, size_t length, const char *type, const struct uri *folder, struct arena *arena,
                   struct listing *ret_listing)
{
    struct listing listing = {0};
    struct names names = {.listing = &listing, .arena = arena};
    bool good = false;
    if (strncasecmp(type, "application/json", 16) == 0)
        good = parse_json(text, length, &names);
    else if (strncasecmp(type, "text/html", 9) == 0)
        good = parse_html(text, length, folder, &names) && listing.count > 0;
    good |= listing.is_too_long;
    if (good)
        *ret_listing = (struct listing){arena_copy(arena, listing.names, listing.count * sizeof *listing.names),
                                        listing.count, listing.is_too_long};
    free(listing.names);
    text_index_free(&names.index);
    return good;
}
