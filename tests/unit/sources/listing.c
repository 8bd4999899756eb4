#include "sources/listing.h"

#include "base/buffer.h"
#include "remote/libcurl.h"

#include "tests/unit/check.h"

/* The names, each with a '|' after it; "none" if the text is no list. */
static const char *names(const char *type, const char *text, struct arena *arena)
{
    struct uri folder;
    struct error error;
    struct listing listing;
    const char *all = "";
    if (!uri_parse("https://host/a%20b/", arena, &folder, &error) ||
        !listing_parse(text, strlen(text), type, &folder, arena, &listing))
        return "none";
    for (size_t i = 0; i < listing.count; i++)
        all = arena_printf(arena, "%s%s|", all, listing.names[i]);
    return all;
}

static void html(struct arena *arena)
{
    static const char *const rows[][2] = {
        /* as nginx, Apache and python -m http.server write them */
        {"<html>\r\n<head><title>Index of /m/</title></head>\r\n<body>\r\n<h1>Index of /m/</h1><hr><pre><a "
         "href=\"../\">../</a>\r\n<a href=\"sub/\">sub/</a>   01-Jan-2024 00:00   -\r\n<a href=\"model-00001-of-00002"
         ".safetensors\">model-00001-of-000..&gt;</a> 01-Jan-2024 00:00   10\r\n</pre><hr></body>\r\n</html>\r\n",
         "sub/|model-00001-of-00002.safetensors|"},
        {"<th><a href=\"?C=N;O=D\">Name</a></th><a href=\"/\">Parent Directory</a><A HREF='a%2Bb%26c.json'>x</A>",
         "a+b&c.json|"},
        {"<li><a href=\"caf%C3%A9.txt\">caf\xc3\xa9.txt</a></li><a href=\"x&amp;y\">", "caf\xc3\xa9.txt|x&y|"},
        {"<a href=\"/a%20b/absolute.json\"><a href=\"https://host/a%20b/whole.json\">", "absolute.json|whole.json|"},
        {"<a href=\"x\"><a href=\"./x\"><a href=\"x/\"><a href=\"x\"><a href=\"x/\">", "x|x/|"}, /* each once */
        /* what leads elsewhere */
        {"<a href=\"https://other/a%20b/x\"><a href=\"/etc/passwd\"><a href=\"sub/file\"><a href=\"../x\">", "none"},
        {"<a href=\"%2e%2e/\"><a href=\"a%2Fb\"><a href=\"a%00b\"><a href=\"javascript:x\"><a href=\"\">", "none"},
        {"<a href=\"unfinished", "none"},
        {"<a href=", "none"},
        {"", "none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_TEXT(names("text/html; charset=utf-8", rows[i][0], arena), rows[i][1]);
    CHECK_TEXT(names("text/plain", rows[0][0], arena), "none");
}

static void json(struct arena *arena)
{
    static const char *const rows[][2] = {
        {"[\n{ \"name\":\"sub\", \"type\":\"directory\", \"mtime\":\"Mon, 01 Jan 2024 00:00:00 GMT\" },\n{ \"name\":"
         "\"config.json\", \"type\":\"file\", \"mtime\":\"Mon, 01 Jan 2024 00:00:00 GMT\", \"size\":10 }\n]",
         "sub/|config.json|"},
        {"[{\"name\":\"a\"},{\"name\":\"a\",\"type\":\"directory\"},{\"name\":\"a\"}]", "a|a/|"},
        {"[]", ""},
        {"[{\"name\":\"a/b\"},{\"name\":\"\"},{\"name\":\"a\\u0000b\"},{\"name\":1},2]", ""},
        {"{\"name\":\"a\"}", "none"},
        {"[{\"name\":\"a\"}", "none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_TEXT(names("application/json", rows[i][0], arena), rows[i][1]);
}

static void limits(struct arena *arena)
{
    struct buffer text = {0};
    for (int i = 0; i <= LISTING_NAMES; i++)
        buffer_printf(&text, "%s{\"name\":\"%d\"}", i == 0 ? "[" : ",", i);
    buffer_append(&text, "]", 2); /* with its NUL */
    struct uri folder;
    struct error error;
    struct listing listing = {0};
    uri_parse("https://host/m/", arena, &folder, &error);
    CHECK(listing_parse((const char *)text.bytes, text.length - 1, "application/json", &folder, arena, &listing));
    CHECK(listing.is_too_long && listing.count == LISTING_NAMES);
    buffer_free(&text);
}

int main(void)
{
    struct error error;
    CHECK(libcurl_load(&error));
    struct arena *arena = arena_new();
    html(arena);
    json(arena);
    limits(arena);
    arena_free(arena);
    return check_done();
}
