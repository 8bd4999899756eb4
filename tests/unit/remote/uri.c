#include "remote/uri.h"

#include "remote/libcurl.h"
#include "tests/unit/check.h"

static void parts(struct arena *arena)
{
    struct uri uri;
    struct error error;
    CHECK(uri_parse("HTTPS://Example.ORG/a%20b/c.gguf?sig=secret#part", arena, &uri, &error));
    CHECK_TEXT(uri.shown, "https://Example.ORG/a%20b/c.gguf");
    CHECK_TEXT(uri.origin, "https://example.org:443");
    CHECK_TEXT(uri.path, "/a%20b/c.gguf");
    CHECK_TEXT(uri.query, "sig=secret");
    CHECK_TEXT(uri.text, "https://Example.ORG/a%20b/c.gguf?sig=secret");
    CHECK(uri_parse("http://[::1]:8080", arena, &uri, &error));
    CHECK_TEXT(uri.origin, "http://[::1]:8080");
    CHECK_TEXT(uri.path, "/");
    CHECK_TEXT(uri.query, "");
}

static void refusals(struct arena *arena)
{
    static const char *const texts[] = {
        "https://user:secret@host/",
        "https://user@host/",
        "ftp://host/secret",
        "file:///etc/passwd",
        "https://",
        "https://host/a b",
        "https://host:99999/",
        "secret",
    };
    struct uri uri;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct error error = {.message = ""};
        CHECK_NAMED(!uri_parse(texts[i], arena, &uri, &error), texts[i]);
        CHECK_NAMED(error.message[0] != '\0' && strstr(error.message, "secret") == NULL, error.message);
    }
}

/* The examples of RFC 3986, section 5.4, that name something else than a query or a fragment. */
static void references(struct arena *arena)
{
    static const char *const rows[][2] = {
        {"g", "http://a/b/c/g"},
        {"./g", "http://a/b/c/g"},
        {"g/", "http://a/b/c/g/"},
        {"/g", "http://a/g"},
        {"//g", "http://g/"},
        {"..", "http://a/b/"},
        {"../../g", "http://a/g"},
        {"../../../g", "http://a/g"},
        {"g;x=1/../y", "http://a/b/c/y"},
        {"https://h/i?j", "https://h/i"},
    };
    struct uri base, uri;
    struct error error;
    CHECK(uri_parse("http://a/b/c/d;p?q", arena, &base, &error));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_NAMED(uri_resolve(&base, rows[i][0], arena, &uri, &error) && strcmp(uri.shown, rows[i][1]) == 0,
                    rows[i][0]);
    CHECK(!uri_resolve(&base, "javascript:alert(1)", arena, &uri, &error));
    CHECK(!uri_resolve(&base, "file:///etc/passwd", arena, &uri, &error));
    CHECK(!uri_resolve(&base, "http://user:pw@h/", arena, &uri, &error));
}

static void places(struct arena *arena)
{
    struct uri file, folder, other;
    struct error error;
    CHECK(uri_parse("https://h/m%20x/model.gguf?sas=1", arena, &file, &error));
    folder = uri_parent(&file, arena);
    CHECK_TEXT(folder.shown, "https://h/m%20x/");
    other = uri_below(&folder, "a+b/c d.json", arena);
    CHECK_TEXT(other.text, "https://h/m%20x/a%2Bb/c%20d.json?sas=1");
    CHECK_TEXT(other.shown, "https://h/m%20x/a%2Bb/c%20d.json");
    CHECK(uri_same_origin(&file, &other));
    CHECK(uri_parse("https://h:444/", arena, &other, &error) && !uri_same_origin(&file, &other));
    CHECK(uri_parse("http://h/", arena, &other, &error) && !uri_same_origin(&file, &other) && !uri_is_private(&other));
    CHECK(uri_parse("http://127.0.0.1:80/", arena, &other, &error) && uri_is_private(&other));
    CHECK(uri_parse("http://127.0.0.1.evil/", arena, &other, &error) && !uri_is_private(&other));
}

int main(void)
{
    struct error error;
    CHECK(libcurl_load(&error));
    struct arena *arena = arena_new();
    parts(arena);
    refusals(arena);
    references(arena);
    places(arena);
    arena_free(arena);
    return check_done();
}
