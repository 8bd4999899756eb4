#include "remote/uri.h"

#include "base/encodings.h"
#include "base/text.h"
#include "remote/libcurl.h"

#include <stdlib.h>
#include <string.h>

/* Copies a part of a parsed URL; "" if the URL does not have it. */
static const char *part_of(CURLU *url, CURLUPart part, unsigned flags, struct arena *arena)
{
    char *text = NULL;
    if (libcurl.url_get(url, part, &text, flags) != CURLUE_OK)
        return "";
    const char *copy = arena_strdup(arena, text);
    libcurl.free(text);
    return copy;
}

static char *lower(char *text)
{
    for (char *c = text; *c != '\0'; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
    return text;
}

static struct uri uri_of(CURLU *url, struct arena *arena)
{
    struct uri uri;
    libcurl.url_set(url, CURLUPART_FRAGMENT, NULL, 0);
    uri.text = part_of(url, CURLUPART_URL, 0, arena);
    uri.query = part_of(url, CURLUPART_QUERY, 0, arena);
    uri.path = part_of(url, CURLUPART_PATH, 0, arena);
    libcurl.url_set(url, CURLUPART_QUERY, NULL, 0);
    uri.shown = part_of(url, CURLUPART_URL, 0, arena);
    uri.origin = lower(arena_printf(arena, "%s://%s:%s", part_of(url, CURLUPART_SCHEME, 0, arena),
                                    part_of(url, CURLUPART_HOST, 0, arena),
                                    part_of(url, CURLUPART_PORT, CURLU_DEFAULT_PORT, arena)));
    return uri;
}

static bool set(CURLU *url, const char *text, struct error *error)
{
    CURLUcode code = libcurl.url_set(url, CURLUPART_URL, text, CURLU_DISALLOW_USER);
    if (code == CURLUE_USER_NOT_ALLOWED)
        return error_set(error, "a URL must not contain a user or a password; put them into ~/.netrc");
    return code == CURLUE_OK || error_set(error, "not a valid URL: %s", libcurl.url_strerror(code));
}

static bool is_http(CURLU *url, struct error *error)
{
    char *scheme = NULL;
    libcurl.url_get(url, CURLUPART_SCHEME, &scheme, 0);
    bool good = scheme != NULL && (strcmp(scheme, "https") == 0 || strcmp(scheme, "http") == 0);
    libcurl.free(scheme);
    return good || error_set(error, "neither an https:// nor an http:// URL");
}

bool uri_resolve(const struct uri *base, const char *reference, struct arena *arena, struct uri *ret_uri,
                 struct error *error)
{
    CURLU *url = libcurl.url();
    if (url == NULL)
        memory_exhausted(sizeof *base);
    bool good = (base == NULL || set(url, base->text, error)) && set(url, reference, error) && is_http(url, error);
    if (good)
        *ret_uri = uri_of(url, arena);
    libcurl.url_cleanup(url);
    return good;
}

bool uri_parse(const char *text, struct arena *arena, struct uri *ret_uri, struct error *error)
{
    if (strpbrk(text, " \t\r\n") != NULL)
        return error_set(error, "not a valid URL: it contains a space; %%20 stands for one");
    return uri_resolve(NULL, text, arena, ret_uri, error);
}

/* The URL with another path. */
static struct uri with_path(const struct uri *uri, const char *path, struct arena *arena)
{
    struct uri result = *uri;
    int length = (int)(strlen(uri->shown) - strlen(uri->path));
    result.path = path;
    result.shown = arena_printf(arena, "%.*s%s", length, uri->shown, path);
    result.text = *uri->query != '\0' ? arena_printf(arena, "%s?%s", result.shown, uri->query) : result.shown;
    return result;
}

struct uri uri_below(const struct uri *folder, const char *name, struct arena *arena)
{
    return with_path(folder, arena_printf(arena, "%s%s", folder->path, percent_encode(name, "/", arena)), arena);
}

struct uri uri_parent(const struct uri *uri, struct arena *arena)
{
    const char *slash = strrchr(uri->path, '/');
    return with_path(uri, arena_strndup(arena, uri->path, (size_t)(slash + 1 - uri->path)), arena);
}

struct uri uri_copy(const struct uri *uri, struct arena *arena)
{
    return (struct uri){
        .text = arena_strdup(arena, uri->text),
        .shown = arena_strdup(arena, uri->shown),
        .origin = arena_strdup(arena, uri->origin),
        .path = arena_strdup(arena, uri->path),
        .query = arena_strdup(arena, uri->query),
    };
}

bool uri_same_origin(const struct uri *a, const struct uri *b)
{
    return strcmp(a->origin, b->origin) == 0;
}

bool uri_is_private(const struct uri *uri)
{
    static const char *const loopback[] = {"http://127.0.0.1:", "http://localhost:", "http://[::1]:"};
    bool is_private = text_starts_with(uri->origin, "https://");
    for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++)
        is_private |= text_starts_with(uri->origin, loopback[i]);
    return is_private;
}
