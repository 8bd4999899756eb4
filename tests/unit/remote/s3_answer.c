/* Expected: the examples of the Amazon S3 API Reference (ListObjectsV2, Error Responses), and what they become when a
 * part is missing, repeated or of another kind. */
#include "remote/s3_answer.h"

#include "base/attempt.h"

#include "tests/unit/check.h"
#include "tests/unit/failing_memory.h"

#define BEGINNING                                                                                                      \
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"                                                                     \
    "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>bucket</Name><Prefix/>"
#define OBJECT(key, size)                                                                                              \
    "<Contents><Key>" key "</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified>"                                \
    "<ETag>&quot;fba9dede5f27731c9771645a39863328&quot;</ETag><Size>" size "</Size>"                                   \
    "<Owner><Key>not this</Key></Owner></Contents>"
#define FOUR_OBJECTS OBJECT("a", "1") OBJECT("b", "2") OBJECT("c", "3") OBJECT("d", "4")
#define LAST         "<IsTruncated>false</IsTruncated></ListBucketResult>"

static void check_pages(struct arena *arena)
{
    static const char text[] = BEGINNING OBJECT("models%2Fa+b%2Bc%25.json", "434234") OBJECT("models/folder/", "0")
        OBJECT("%C3%A9&amp;", "18446744073709551615") LAST;
    struct s3_page page;
    struct error error;
    CHECK(s3_page_read(text, strlen(text), arena, &page, &error));
    CHECK_NAMED(page.n_objects == 2 && page.next == NULL, "a key that ends in a slash is a folder");
    CHECK_TEXT(page.objects[0].key, "models/a b+c%.json");
    CHECK_TEXT(page.objects[0].etag, "\"fba9dede5f27731c9771645a39863328\"");
    CHECK_TEXT(page.objects[0].last_modified, "2009-10-12T17:50:30.000Z");
    CHECK(page.objects[0].size == 434234);
    CHECK_TEXT(page.objects[1].key, "\xc3\xa9&");
    CHECK(page.objects[1].size == UINT64_MAX);

    static const char more[] = BEGINNING
        "<IsTruncated>true</IsTruncated><NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/</NextContinuationToken>"
        "</ListBucketResult>";
    CHECK(s3_page_read(more, strlen(more), arena, &page, &error));
    CHECK(page.n_objects == 0);
    CHECK_TEXT(page.next, "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/");
}

static const struct {
    const char *text, *reason;
} refused[] = {
    {"", "no element found"},
    {"<html><body>", "no element found"},
    {BEGINNING "</ListBucketResult>", "it has no IsTruncated"},
    {BEGINNING "<IsTruncated>true</IsTruncated></ListBucketResult>", "it is truncated, without a token for more"},
    {BEGINNING OBJECT("a%00b", "1") LAST, "a key is not percent-encoded, or has a NUL byte"},
    {BEGINNING OBJECT("a%2", "1") LAST, "a key is not percent-encoded, or has a NUL byte"},
    {BEGINNING OBJECT("a", "18446744073709551616") LAST, "an object has no key or no size"},
    {BEGINNING OBJECT("a", "-1") LAST, "an object has no key or no size"},
    {BEGINNING OBJECT("a", "") LAST, "an object has no key or no size"},
    {BEGINNING OBJECT("a", "1") "<Contents><Size>1</Size></Contents>" LAST, "an object has no key or no size"},
    {"<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\">]>" BEGINNING OBJECT("&a;", "1") LAST, "it has a document type"},
    {"<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>", "its elements are nested too deeply"},
    {BEGINNING OBJECT("a", "1"), "no element found"},
};

static void check_refused(struct arena *arena)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct s3_page page;
        struct error error;
        char expected[200];
        snprintf(expected, sizeof expected, "the store's listing cannot be read: %s", refused[i].reason);
        CHECK(!s3_page_read(refused[i].text, strlen(refused[i].text), arena, &page, &error));
        CHECK_TEXT(error.message, expected);
    }
}

static void check_failures(struct arena *arena)
{
    static const char text[] =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>AuthorizationHeaderMalformed</Code>"
        "<Message>the region 'us-east-1' is wrong; expecting 'eu-west-1'</Message><Region>eu-west-1</Region>"
        "<RequestId>4442587FB7D0A2F9</RequestId></Error>";
    struct s3_failure failure = s3_failure_read(text, strlen(text), arena);
    CHECK_TEXT(failure.code, "AuthorizationHeaderMalformed");
    CHECK_TEXT(failure.message, "the region 'us-east-1' is wrong; expecting 'eu-west-1'");
    CHECK_TEXT(failure.region, "eu-west-1");
    failure = s3_failure_read("<html>", strlen("<html>"), arena);
    CHECK(failure.code == NULL && failure.message == NULL && failure.region == NULL);
}

static void read_anew(void *text)
{
    struct arena *arena = arena_new();
    struct s3_page page;
    struct error error = {""};
    CHECK(s3_page_read(text, strlen(text), arena, &page, &error) && page.n_objects == 12);
    arena_free(arena);
}

/* What the parser has is freed, too: a sanitized build looks for that. */
static void check_lacking_memory(void)
{
    static char text[] = BEGINNING FOUR_OBJECTS FOUR_OBJECTS FOUR_OBJECTS LAST;
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
    check_pages(arena);
    check_refused(arena);
    check_failures(arena);
    check_lacking_memory();
    arena_free(arena);
    return check_done();
}
