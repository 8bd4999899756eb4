/* Expected: the examples of RFC 4918, section 9.1, and what they become when a part is missing, repeated or hostile. */
#include "fs/http/dav_request.h"

#include "base/attempt.h"

#include "tests/unit/check.h"
#include "tests/unit/failing_memory.h"

#define BEGINNING "<?xml version=\"1.0\" encoding=\"utf-8\" ?>\n<D:propfind xmlns:D=\"DAV:\">"
#define END       "</D:propfind>"

static struct dav_request read_valid(const char *text, struct arena *arena)
{
    struct dav_request request = {0};
    struct error error = {""};
    CHECK_NAMED(dav_request_read(text, strlen(text), arena, &request, &error), text);
    return request;
}

static void check_valid(struct arena *arena)
{
    CHECK(read_valid("", arena).kind == DAV_ALL);
    CHECK(read_valid(BEGINNING "<D:allprop/><D:include><D:quota/></D:include>" END, arena).kind == DAV_ALL);
    CHECK(read_valid(BEGINNING "<D:propname/>" END, arena).kind == DAV_NAMES);
    struct dav_request request =
        read_valid(BEGINNING "<D:prop xmlns:R=\"http://ns.example.com/boxschema/\"><R:bigbox/><D:getetag>"
                             "<R:inner/>text</D:getetag><none/></D:prop><R:other xmlns:R=\"R\"><R:prop/></R:other>" END,
                   arena);
    CHECK(request.kind == DAV_NAMED && request.n_names == 3);
    CHECK_TEXT(request.names[0].space, "http://ns.example.com/boxschema/");
    CHECK_TEXT(request.names[0].name, "bigbox");
    CHECK_TEXT(request.names[1].space, "DAV:");
    CHECK_TEXT(request.names[1].name, "getetag");
    CHECK_TEXT(request.names[2].space, "");
    CHECK_TEXT(request.names[2].name, "none");
    CHECK(read_valid("<propfind xmlns=\"DAV:\"><prop/></propfind>", arena).n_names == 0);
}

static const struct {
    const char *text, *reason;
} refused[] = {
    {"x", "syntax error"},
    {"<", "unclosed token"},
    {BEGINNING "<D:allprop/>", "no element found"},
    {BEGINNING END, "it has not one of allprop, propname and prop"},
    {BEGINNING "<D:allprop/><D:prop/>" END, "it has not one of allprop, propname and prop"},
    {BEGINNING "<D:prop/><D:prop/>" END, "it has not one of allprop, propname and prop"},
    {"<D:propfind xmlns:D=\"DAV\"><D:allprop/>" END, "its element is not propfind of the namespace DAV:"},
    {"<propfind><allprop/></propfind>", "its element is not propfind of the namespace DAV:"},
    {"<D:propertyupdate xmlns:D=\"DAV:\"/>", "its element is not propfind of the namespace DAV:"},
    {"<D:propfind><D:allprop/>" END, "unbound prefix"},
    {BEGINNING "<D:prop xmlns:bar=\"\"><bar:foo/></D:prop>" END, "must not undeclare prefix"},
    {BEGINNING "<D:prop><D:a></D:b></D:prop>" END, "mismatched tag"},
    {BEGINNING "<D:prop>&b;</D:prop>" END, "undefined entity"},
    {BEGINNING "<D:prop>\x01</D:prop>" END, "not well-formed"},
    {"<!DOCTYPE a [<!ENTITY b \"bbbbbbbb\"><!ENTITY c \"&b;&b;\">]>" BEGINNING "<D:prop>&c;</D:prop>" END,
     "it has a document type"},
    {"<!DOCTYPE a SYSTEM \"file:///etc/passwd\">" BEGINNING "<D:allprop/>" END, "it has a document type"},
    {BEGINNING "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>", "its elements are nested too deeply"},
};

static void check_refused(struct arena *arena)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct dav_request request;
        struct error error = {""};
        CHECK_NAMED(!dav_request_read(refused[i].text, strlen(refused[i].text), arena, &request, &error),
                    refused[i].text);
        CHECK_NAMED(strstr(error.message, refused[i].reason) != NULL, error.message);
    }
    struct dav_request request;
    struct error error;
    CHECK_NAMED(!dav_request_read("<a/>\0", 5, arena, &request, &error), "a NUL byte");
}

/* Returns a request that names `count` properties. */
static const char *request_of(int count, struct arena *arena)
{
    const char *text = BEGINNING "<D:prop>";
    for (int i = 0; i < count; i++)
        text = arena_printf(arena, "%s<D:p%d/>", text, i);
    return arena_printf(arena, "%s</D:prop>" END, text);
}

static void read_anew(void *text)
{
    struct arena *arena = arena_new();
    struct dav_request request;
    struct error error = {""};
    CHECK(dav_request_read(text, strlen(text), arena, &request, &error));
    arena_free(arena);
}

/* What the parser has is freed, too: a sanitized build looks for that. */
static void check_lacking_memory(struct arena *arena)
{
    char *text = arena_strdup(arena, request_of(DAV_MOST_PROPERTIES, arena));
    bool failed = true;
    for (long n = 0; failed && n < 1000; n++) {
        allow_allocations(n);
        size_t lacking = attempt_lacking(read_anew, text);
        failed = has_failed_allocation();
        allow_allocations(-1);
        CHECK((lacking > 0) == failed);
    }
    CHECK(!failed);
}

int main(void)
{
    struct arena *arena = arena_new();
    struct dav_request request;
    struct error error;
    check_valid(arena);
    check_refused(arena);
    CHECK(read_valid(request_of(DAV_MOST_PROPERTIES, arena), arena).n_names == DAV_MOST_PROPERTIES);
    const char *many = request_of(DAV_MOST_PROPERTIES + 1, arena);
    CHECK(!dav_request_read(many, strlen(many), arena, &request, &error));
    CHECK_TEXT(error.message, "the body of the request cannot be read: it names more than 64 properties");
    check_lacking_memory(arena);
    arena_free(arena);
    return check_done();
}
