/* Each exchange gets the answer to its own request, in whatever order the answers come. This program replaces http.c:
 * it answers all requests once the last has been made. */
#include "remote/http.h"

#include "remote/libcurl.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

enum { N_REQUESTS = 4, LIMIT = 10 };

static struct http_request requests[N_REQUESTS];
static size_t n_requests;

static void finish(const struct http_request *request, enum verdict verdict, const char *reason)
{
    struct error error = {""};
    const struct answer answer = {.status = verdict == VERDICT_TAKE ? 200 : 404};
    if (verdict != VERDICT_TAKE)
        error_set(&error, "%s", reason);
    request->done(request->context, &(struct http_result){verdict, &answer, &request->uri, &error, reason});
}

/* The last one is answered first: 0 in two pieces, 1 again after it broke off, 2 is too long, 3 is refused. */
static void answer_all(void)
{
    finish(&requests[3], VERDICT_REFUSED, "no such file");
    CHECK(requests[2].take(requests[2].context, 0, "0123456789", LIMIT));
    CHECK_NAMED(!requests[2].take(requests[2].context, LIMIT, "x", 1), "more than the limit");
    finish(&requests[2], VERDICT_REFUSED, "too long");
    CHECK(requests[1].take(requests[1].context, 0, "abc", 3) && requests[1].take(requests[1].context, 0, "abcdef", 6));
    CHECK_NAMED(!requests[1].take(requests[1].context, 8, "z", 1), "bytes that leave a gap");
    finish(&requests[1], VERDICT_TAKE, "");
    CHECK(requests[0].take(requests[0].context, 0, "one", 3) && requests[0].take(requests[0].context, 3, "two", 3));
    finish(&requests[0], VERDICT_TAKE, "");
}

void http_submit(const struct http_request *request)
{
    requests[n_requests++] = *request;
    if (n_requests == N_REQUESTS)
        answer_all();
}

const struct http_credential *http_credential_copy(const struct http_credential *credential, struct arena *arena)
{
    return NULL;
}

int main(void)
{
    struct exchange exchanges[N_REQUESTS];
    struct arena *arena = arena_new();
    struct error error = {""};
    files_must(libcurl_load(&error), "libcurl");
    for (size_t i = 0; i < N_REQUESTS; i++) {
        exchanges[i] = (struct exchange){.limit = LIMIT};
        exchanges[i].request.question = (struct question){.size = SIZE_UNKNOWN};
        files_must(uri_parse(arena_printf(arena, "https://host/%zu", i), arena, &exchanges[i].request.uri, &error),
                   "a URL");
    }
    CHECK(exchange_all(exchanges, N_REQUESTS, arena, &error));
    CHECK(exchanges[0].verdict == VERDICT_TAKE && exchanges[0].length == 6 && exchanges[0].answer.status == 200);
    CHECK_TEXT((const char *)exchanges[0].bytes, "onetwo");
    CHECK_TEXT(exchanges[0].uri.path, "/0");
    CHECK(exchanges[1].length == 6);
    CHECK_TEXT((const char *)exchanges[1].bytes, "abcdef");
    CHECK(exchanges[2].verdict == VERDICT_REFUSED && exchanges[3].verdict == VERDICT_REFUSED);
    CHECK_TEXT(exchanges[3].error.message, "no such file");
    CHECK_TEXT(exchanges[3].refusal, "no such file");
    CHECK_TEXT(exchanges[2].error.message, "too long");
    CHECK(exchanges[3].length == 0 && exchanges[3].bytes[0] == '\0');
    arena_free(arena);
    return check_done();
}
