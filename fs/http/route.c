#include "fs/http/route.h"

#include "base/encodings.h"
#include "base/text.h"

#include <string.h>
#include <strings.h>

enum { MAX_PARTS = 64 };

struct parts {
    const char *items[MAX_PARTS];
    size_t count;
};

/* Decodes a part; NULL if it must not be looked up. */
static const char *decode_part(const char *text, size_t length, struct arena *arena)
{
    const char *part = percent_decode(text, length, arena);
    return part == NULL || strcmp(part, ".") == 0 || strcmp(part, "..") == 0 ? NULL : part;
}

/* Splits a target into its parts; empty ones are left out. */
static bool split(const char *target, struct arena *arena, struct parts *ret_parts)
{
    ret_parts->count = 0;
    while (*target != '\0') {
        size_t length = strcspn(target, "/");
        if (length > 0) {
            const char *part = ret_parts->count < MAX_PARTS ? decode_part(target, length, arena) : NULL;
            if (part == NULL)
                return false;
            ret_parts->items[ret_parts->count++] = part;
        }
        target += length + (target[length] == '/');
    }
    return true;
}

static const char *join(const struct parts *parts, size_t first, struct arena *arena)
{
    const char *path = "";
    for (size_t i = first; i < parts->count; i++)
        path = arena_printf(arena, "%s%s%s", path, i == first ? "" : "/", parts->items[i]);
    return path;
}

/* Reports whether the parts begin with a pattern of parts, in which "*" is any part. */
static bool begins(const struct parts *parts, const char *const *pattern, size_t length)
{
    if (parts->count < length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (strcmp(pattern[i], "*") != 0 && strcmp(pattern[i], parts->items[i]) != 0)
            return false;
    return true;
}

/* The first row that fits counts. */
static const struct {
    enum route_kind kind;
    const char *pattern[6];
    size_t length;
    size_t repository, revision; /* indices of their parts; 0: none, which no path has there */
    bool has_path;
} rows[] = {
    {ROUTE_METRICS, {"metrics"}, 1, 0, 0, false},
    {ROUTE_HEALTH, {"healthz"}, 1, 0, 0, false},
    {ROUTE_VIEW, {"view", "*", "*"}, 3, 1, 0, false},
    {ROUTE_MODEL, {"api", "models", "*", "*", "revision", "*"}, 6, 2, 5, false},
    {ROUTE_TREE, {"api", "models", "*", "*", "tree", "*"}, 6, 2, 5, true},
    {ROUTE_REFS, {"api", "models", "*", "*", "refs"}, 5, 2, 0, false},
    {ROUTE_MODEL, {"api", "models", "*", "*"}, 4, 2, 0, false},
    {ROUTE_MODELS, {"api", "models"}, 2, 0, 0, false},
    {ROUTE_MANIFEST, {"v2", "*", "*", "manifests", "*"}, 5, 1, 4, false},
    {ROUTE_BLOB, {"v2", "*", "*", "blobs", "*"}, 5, 1, 4, false},
    {ROUTE_REFERRERS, {"v2", "*", "*", "referrers", "*"}, 5, 1, 4, false},
    {ROUTE_TAGS, {"v2", "*", "*", "tags", "list"}, 5, 1, 0, false},
    {ROUTE_REGISTRY, {"v2"}, 1, 0, 0, false},
};

enum { N_ROWS = sizeof rows / sizeof *rows };

static const struct route unknown = {ROUTE_UNKNOWN, "", "", "", false};

bool route_is_owner(const char *name)
{
    size_t i = 0;
    while (i < N_ROWS && strcmp(rows[i].pattern[0], name) != 0)
        i++;
    return i == N_ROWS;
}

/* A file, by the path that the hub gives it or by its name, or a directory. */
static struct route route_of_file(const struct parts *parts, bool is_directory, struct arena *arena)
{
    if (!route_is_owner(parts->items[0]))
        return unknown;
    if (parts->count == 1)
        return (struct route){ROUTE_OWNER, parts->items[0], "main", "", is_directory};
    const char *repository = arena_printf(arena, "%s/%s", parts->items[0], parts->items[1]);
    if (parts->count >= 5 && strcmp(parts->items[2], "resolve") == 0)
        return (struct route){ROUTE_FILE, repository, parts->items[3], join(parts, 4, arena), is_directory};
    return (struct route){ROUTE_PATH, repository, "main", join(parts, 2, arena), is_directory};
}

struct route route_parse(const char *target, struct arena *arena)
{
    struct parts parts;
    bool is_directory = text_ends_with(target, "/");
    if (!split(target, arena, &parts))
        return unknown;
    if (parts.count == 0)
        return (struct route){ROUTE_PAGE, "", "", "", true};
    for (size_t i = 0; i < N_ROWS; i++) {
        if (!begins(&parts, rows[i].pattern, rows[i].length) || (!rows[i].has_path && parts.count > rows[i].length))
            continue;
        struct route route = {rows[i].kind, "", "main", "", is_directory};
        size_t at = rows[i].repository;
        if (at != 0)
            route.repository = arena_printf(arena, "%s/%s", parts.items[at], parts.items[at + 1]);
        if (rows[i].revision != 0)
            route.revision = parts.items[rows[i].revision];
        route.path = join(&parts, rows[i].length, arena);
        return route;
    }
    return route_of_file(&parts, is_directory, arena);
}

struct route route_parse_s3(const char *target, struct arena *arena)
{
    const char *at = target + (*target == '/');
    size_t length = strcspn(at, "/");
    const char *bucket = percent_decode(at, length, arena), *rest = at + length + (at[length] == '/'),
               *key = percent_decode(rest, strlen(rest), arena);
    if (bucket == NULL || key == NULL)
        return unknown;
    return (struct route){ROUTE_S3, bucket, "main", key, text_ends_with(target, "/")};
}

const char *route_path(const char *target, const char **ret_host, struct arena *arena)
{
    static const char *const schemes[] = {"http://", "https://"};
    *ret_host = NULL;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        if (strncasecmp(target, schemes[i], strlen(schemes[i])) != 0)
            continue;
        const char *host = target + strlen(schemes[i]);
        size_t length = strcspn(host, "/");
        *ret_host = arena_strndup(arena, host, length);
        return host + length;
    }
    return target;
}
