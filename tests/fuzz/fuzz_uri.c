/* Any text as a URL, and as a reference in one.
 *
 * Holds for what is accepted: it is http or https without a user; its parts are those of its text, and parsing that
 * again gives the same. */
#include "base/encodings.h"
#include "base/text.h"
#include "remote/libcurl.h"
#include "remote/uri.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct uri *uri, struct arena *arena)
{
    struct error error;
    struct uri again;
    require(text_starts_with(uri->origin, "https://") || text_starts_with(uri->origin, "http://"));
    require(uri->path[0] == '/');
    require(strchr(uri->shown, '?') == NULL && strpbrk(uri->text, " \r\n") == NULL);
    require(uri_parse(uri->text, arena, &again, &error));
    require(strcmp(uri->text, again.text) == 0 && strcmp(uri->path, again.path) == 0 && uri_same_origin(uri, &again));
    const struct uri copy = uri_copy(uri, arena);
    require(uri_same_origin(uri, &copy) && strcmp(copy.text, uri->text) == 0 && strcmp(copy.query, uri->query) == 0);
    require(uri_is_private(uri) || text_starts_with(uri->origin, "http://"));
    const struct uri parent = uri_parent(uri, arena), below = uri_below(&parent, "a b/\xc3\xa9", arena);
    require(text_ends_with(parent.path, "/") && text_starts_with(below.path, parent.path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error = {""};
    struct uri uri, base;
    struct arena *arena = arena_new();
    const char *text = arena_strndup(arena, (const char *)data, size);
    require(libcurl_load(&error));
    if (uri_parse(text, arena, &uri, &error))
        check(&uri, arena);
    else
        require_one_line(&error);
    require(uri_parse("https://example.org/models/tiny/?key=secret", arena, &base, &error));
    if (uri_resolve(&base, text, arena, &uri, &error))
        check(&uri, arena);
    const char *name = percent_decode_name(text, strlen(text), arena);
    require(strlen(percent_encode(text, "/", arena)) >= strlen(text));
    require(name == NULL || (*name != '\0' && strchr(name, '/') == NULL && strcmp(name, "..") != 0));
    arena_free(arena);
    return 0;
}
