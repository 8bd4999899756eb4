/* An object requests the bytes that its readers want, each once, and stores the answers. This program replaces http.c:
 * it answers at once, or keeps the requests. The linker sends allocations of wfs to it, which can fail. */
#include "remote/object.h"

#include "base/attempt.h"
#include "remote/libcurl.h"
#include "remote/options.h"

#include "tests/unit/check.h"
#include "tests/unit/failing_memory.h"
#include "tests/unit/files.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST_REQUESTS = 64, N_GRANULES = 41 };
static const uint64_t size = (N_GRANULES - 1) * STORE_GRANULE + 1000;

static struct http_request requests[MOST_REQUESTS];
static char asked[MOST_REQUESTS][256]; /* the URL of each, which ends with the request */
static _Atomic size_t n_requests;
static size_t n_hurried;

/* How requests are answered. */
static bool is_held;               /* not at all, until answer() */
static int status = 206;           /* else 200 for all, 403 or 503 */
static const char *etag = "\"a\""; /* of the answers */
static const char *place;          /* the URL that answers come from; NULL: the one that was asked */
static bool is_place_expired;      /* a 403 comes from there, too */

static unsigned char byte_at(uint64_t offset)
{
    return (unsigned char)(offset * 7 + offset / 4099);
}

static void send_bytes(const struct http_request *request, uint64_t first, uint64_t length)
{
    enum { PIECE = 100 * 1000 };
    static unsigned char bytes[PIECE];
    for (uint64_t offset = first, end = first + length; offset < end;) {
        size_t n = end - offset < PIECE ? (size_t)(end - offset) : PIECE;
        for (size_t i = 0; i < n; i++)
            bytes[i] = byte_at(offset + i);
        CHECK(request->take(request->context, offset, bytes, n));
        offset += n;
    }
}

static void answer(const struct http_request *request)
{
    struct arena *arena = arena_new();
    struct answer answer = {.status = status};
    struct error error = {""};
    struct uri uri = request->uri;
    strcpy(answer.etag, etag);
    if (place != NULL && (status != 403 || is_place_expired))
        files_must(uri_parse(place, arena, &uri, &error), place);
    enum verdict verdict = status == 403 ? VERDICT_REFUSED : status == 503 ? VERDICT_RETRY : VERDICT_TAKE;
    if (verdict == VERDICT_TAKE && !request->begin(request->context, &uri, &answer))
        verdict = answer_changed(&error);
    if (verdict == VERDICT_TAKE)
        send_bytes(request, request->question.first, request->question.length);
    else if (verdict != VERDICT_CHANGED)
        error_set(&error, "the server answers %d", status);
    const struct http_result result = {verdict, &answer, &uri, &error, ""};
    request->done(request->context, &result);
    arena_free(arena);
}

void http_submit(const struct http_request *request)
{
    files_must(n_requests < MOST_REQUESTS, "room for requests");
    snprintf(asked[n_requests], sizeof asked[0], "%s", request->uri.text);
    requests[n_requests] = *request;
    n_requests++; /* last: another thread may wait for it */
    if (!is_held)
        answer(request);
}

void http_hurry(const void *context)
{
    n_hurried++;
}

const struct http_credential *http_credential_copy(const struct http_credential *credential, struct arena *arena)
{
    return NULL;
}

static struct object *open_number(unsigned number, uint64_t n_bytes, const char *known_etag)
{
    char key[32], text[2048]; /* more than the first part of an arena has room for */
    struct error error;
    struct arena *arena = arena_new();
    struct object_origin origin = {.key = key, .name = "file", .size = n_bytes, .etag = known_etag};
    snprintf(key, sizeof key, "url-%04x", number);
    snprintf(text, sizeof text, "https://host/%01500u", number);
    files_must(uri_parse(text, arena, &origin.uri, &error), text);
    struct object *object = object_new(&origin);
    arena_free(arena);
    return object;
}

static unsigned n_objects;

/* A new object, of which nothing is in the store. */
static struct object *open_object(uint64_t n_bytes, const char *known_etag)
{
    struct object *object = open_number(n_objects++, n_bytes, known_etag);
    n_requests = n_hurried = 0;
    is_held = false;
    status = 206;
    etag = "\"a\"";
    place = NULL;
    return object;
}

static bool reads(struct object *object, uint64_t offset, size_t length, struct error *error)
{
    static unsigned char bytes[3 * STORE_GRANULE];
    if (!object_read(object, offset, length, bytes, error))
        return false;
    bool good = true;
    for (size_t i = 0; i < length; i++)
        good &= bytes[i] == byte_at(offset + i);
    return CHECK_NAMED(good, "the object's bytes");
}

/* Everything is asked for once, in requests of a limited size. */
static void wanted(void)
{
    struct error error = {""};
    struct object *object = open_object(size, NULL);
    is_held = true;
    object_want(object, 0, size, false);
    CHECK(n_requests == 3 && requests[0].question.is_range && !requests[0].is_urgent);
    uint64_t next = 0;
    for (size_t i = 0; i < n_requests; i++) {
        CHECK(requests[i].question.first == next && requests[i].question.length <= OBJECT_REQUEST);
        next += requests[i].question.length;
    }
    CHECK(next == size && object_cached(object) == 0);
    object_want(object, 5, size - 5, false);
    CHECK_NAMED(n_requests == 3 && n_hurried == 0, "what is under way is not asked for again");
    object_want(object, size - 1, 1, true);
    CHECK_NAMED(n_requests == 3 && n_hurried == 1, "but moved to the front, if a reader waits");
    for (size_t i = 0; i < 3; i++)
        answer(&requests[i]);
    CHECK(object_wait(object, 0, size, &error) && reads(object, STORE_GRANULE - 10, STORE_GRANULE + 20, &error));
    CHECK(reads(object, size - 1, 1, &error) && n_requests == 3 && object_cached(object) == size);
    object_free(object);
}

/* A read asks for the granules that it needs, and no others. */
static void read_alone(void)
{
    struct error error = {""};
    struct object *object = open_object(size, NULL);
    CHECK(reads(object, 3 * STORE_GRANULE - 1, 2, &error) && n_requests == 1);
    CHECK(requests[0].question.first == 2 * STORE_GRANULE && requests[0].question.length == 2 * STORE_GRANULE);
    CHECK(requests[0].is_urgent && object_cached(object) == 2 * STORE_GRANULE);
    object_want(object, 0, 5 * STORE_GRANULE, false);
    CHECK_NAMED(n_requests == 3 && requests[1].question.length == 2 * STORE_GRANULE &&
                    requests[2].question.first == 4 * STORE_GRANULE,
                "the gaps around what is here");
    object_free(object);
    object = open_object(1000, NULL);
    CHECK(reads(object, 10, 10, &error) && n_requests == 1 && !requests[0].question.is_range);
    CHECK(requests[0].question.length == 1000 && reads(object, 0, 1000, &error) && n_requests == 1);
    object_free(object);
}

/* A failure reaches who reads; what had come before stays. */
static void failures(void)
{
    struct error error = {""};
    struct object *object = open_object(size, NULL);
    CHECK(reads(object, 0, 1, &error));
    status = 503;
    CHECK(!reads(object, STORE_GRANULE, 1, &error));
    CHECK_TEXT(error.message, "the server answers 503");
    CHECK(reads(object, 1, 1, &error) && object_cached(object) == STORE_GRANULE);
    object_free(object);
}

/* Other bytes under the same URL: nothing is read any more, also of what had come. */
static void changes(void)
{
    struct error error = {""};
    struct object *object = open_object(size, NULL);
    CHECK(reads(object, 0, 1, &error) && requests[0].question.etag == NULL);
    etag = "\"b\"";
    CHECK(!reads(object, STORE_GRANULE, 1, &error) && error.code == ESTALE);
    CHECK_TEXT(requests[1].question.etag != NULL ? "known" : "unknown", "known");
    etag = "\"a\"";
    CHECK(!reads(object, STORE_GRANULE, 1, &error) && error.code == ESTALE && n_requests == 2);
    object_free(object);
    object = open_object(size, NULL);
    etag = "W/\"a\"";
    CHECK(reads(object, 0, 1, &error));
    etag = "W/\"b\"";
    CHECK_NAMED(reads(object, STORE_GRANULE, 1, &error), "a weak tag does not tell");
    object_free(object);
}

/* Where a redirect led is asked the next time; once it has expired, the object's own URL is asked again. */
static void redirected(void)
{
    struct error error = {""};
    struct object *object = open_object(size, "\"a\"");
    place = "https://elsewhere/signed?secret";
    CHECK(reads(object, 0, 1, &error) && strstr(asked[0], "https://host/") == asked[0]);
    is_held = true;
    object_want(object, STORE_GRANULE, 1, true);
    CHECK(n_requests == 2);
    CHECK_TEXT(asked[1], place);
    status = 403;
    answer(&requests[1]);
    CHECK_NAMED(n_requests == 3 && strstr(asked[2], "https://host/") == asked[2], "its own URL again");
    answer(&requests[2]);
    CHECK_NAMED(n_requests == 3 && !object_wait(object, STORE_GRANULE, 1, &error), "but not a second time");
    CHECK_TEXT(error.message, "the server answers 403");
    object_free(object);
    is_held = false;
    status = 206;
    place = NULL;
}

/* Each of the links that the object's own URL redirects to has expired, but the last. */
static void expired_in_a_row(void)
{
    struct error error = {""};
    struct object *object = open_object(size, "\"a\"");
    place = "https://elsewhere/signed?old";
    is_held = is_place_expired = true;
    object_want(object, 0, 1, true);
    status = 403;
    for (size_t i = 0; i < 2; i++)
        answer(&requests[i]);
    CHECK(n_requests == 3 && strstr(asked[2], "https://host/") == asked[2]);
    status = 206;
    answer(&requests[2]);
    CHECK(reads(object, 0, 1, &error));
    is_held = is_place_expired = false;
    place = NULL;
    object_free(object);
}

/* Granules on both sides of the end of a segment, of which each has memory of its own. */
static const uint64_t four = STORE_SEGMENT - 2 * STORE_GRANULE;

static void want_four(void *object)
{
    object_want(object, four, 4 * STORE_GRANULE, true);
}

/* A request that cannot be made for lack of memory leaves no granule that is waited for and never comes, here or in
 * another process. */
static void lacking_memory(void)
{
    struct error error = {""};
    bool failed = true;
    for (long n = 0; failed && n < 1000; n++) {
        struct object *object = open_object(2 * STORE_SEGMENT, NULL);
        struct object *other = open_number(n_objects - 1, 2 * STORE_SEGMENT, NULL);
        is_held = true;
        allow_allocations(n);
        size_t lacking = attempt_lacking(want_four, object);
        failed = has_failed_allocation();
        allow_allocations(-1);
        is_held = false;
        CHECK((lacking > 0) == failed && n_requests == !failed);
        if (failed) {
            alarm(20);
            CHECK(reads(other, four + STORE_GRANULE, 1, &error) && reads(object, four, 3 * STORE_GRANULE, &error));
            alarm(0);
        } else
            answer(&requests[0]);
        object_free(object);
        object_free(other);
    }
    CHECK(!failed);
}

/* Memory may lack for the place that a redirect led to: then the next request asks the object's own URL. */
static void lacking_memory_for_a_place(void)
{
    struct error error = {""};
    bool failed = true;
    place = "https://elsewhere/signed?secret";
    for (long n = 0; failed && n < 1000; n++) {
        struct object *object = open_object(size, NULL);
        struct arena *arena = arena_new();
        struct answer found = {.status = 206};
        struct uri uri;
        place = "https://elsewhere/signed?secret";
        files_must(uri_parse(place, arena, &uri, &error), place);
        is_held = true;
        object_want(object, 0, 1, true);
        allow_allocations(n);
        CHECK(requests[0].begin(requests[0].context, &uri, &found));
        failed = has_failed_allocation();
        allow_allocations(-1);
        object_want(object, STORE_GRANULE, 1, true);
        CHECK_TEXT(strstr(asked[1], "elsewhere") != NULL ? "there" : "here", failed ? "here" : "there");
        for (size_t i = 0; i < n_requests; i++)
            answer(&requests[i]);
        object_free(object);
        arena_free(arena);
    }
    CHECK(!failed);
    is_held = false;
    place = NULL;
}

/* A reader in another thread. */
struct reader {
    struct object *object;
    uint64_t offset;
    bool done;
    pthread_t thread;
};

static void *read_there(void *context)
{
    struct reader *reader = context;
    struct error error = {""};
    reader->done = object_wait(reader->object, reader->offset, 1, &error);
    return NULL;
}

static void begin_reading(struct reader *reader, struct object *object, uint64_t granule)
{
    *reader = (struct reader){.object = object, .offset = granule * STORE_GRANULE};
    files_must(pthread_create(&reader->thread, NULL, read_there, reader) == 0, "a thread");
}

static bool end_reading(struct reader *reader)
{
    pthread_join(reader->thread, NULL);
    return reader->done;
}

static void await_requests(size_t n)
{
    for (int i = 0; i < 10000 && n_requests < n; i++)
        usleep(1000);
    CHECK(n_requests == n);
}

static _Atomic int64_t seconds_later;

/* The clock of the program, which the test can put forward. */
int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    int result = (int)syscall(SYS_clock_gettime, clock, ret_time);
    ret_time->tv_sec += clock == CLOCK_MONOTONIC ? seconds_later : 0;
    return result;
}

/* Two objects with one key are to each other what two processes are. */
static void claimed_elsewhere(void)
{
    struct reader reader;
    struct error error = {""};
    struct object *one = open_object(size, NULL), *other = open_number(n_objects - 1, size, NULL);
    is_held = true;
    object_want(one, 0, 3 * STORE_GRANULE, false);
    object_want(other, 0, 4 * STORE_GRANULE, false);
    CHECK(n_requests == 2 && requests[1].question.first == 3 * STORE_GRANULE);
    CHECK_NAMED(requests[1].question.length == STORE_GRANULE, "only what the other does not fetch");
    begin_reading(&reader, other, 1);
    answer(&requests[0]);
    CHECK_NAMED(end_reading(&reader) && reads(other, 0, 2 * STORE_GRANULE, &error) && n_requests == 2,
                "and reads it once it is there");
    answer(&requests[1]);
    CHECK(reads(one, 3 * STORE_GRANULE, 1, &error) && n_requests == 2);

    object_want(one, 5 * STORE_GRANULE, 1, false);
    begin_reading(&reader, other, 5);
    status = 503;
    answer(&requests[2]);
    status = 206;
    await_requests(4);
    answer(&requests[3]);
    CHECK_NAMED(end_reading(&reader), "where the other fails, this one tries");

    object_want(one, 7 * STORE_GRANULE, 1, false);
    begin_reading(&reader, other, 7);
    usleep(50000);
    CHECK(n_requests == 5);
    seconds_later = OBJECT_ELSEWHERE / 1000 + 1;
    await_requests(6);
    answer(&requests[5]);
    CHECK_NAMED(end_reading(&reader), "and where nothing comes from it for long");
    object_want(one, 9 * STORE_GRANULE, 1, false);
    object_want(other, 9 * STORE_GRANULE, 1, false);
    CHECK_NAMED(n_requests == 8, "which is not waited for again");
    for (size_t i = 4; i < n_requests; i += i == 4 ? 2 : 1)
        answer(&requests[i]);
    is_held = false;
    object_free(one);
    object_free(other);
}

int main(void)
{
    char cache[1024];
    struct remote_options options = {.cache = cache};
    struct error error;
    files_begin();
    files_must(libcurl_load(&error), "libcurl");
    files_must(getcwd(cache, sizeof cache - 100) != NULL, "getcwd");
    strcat(cache, "/cache");
    remote_use(&options);
    wanted();
    read_alone();
    failures();
    changes();
    redirected();
    expired_in_a_row();
    claimed_elsewhere();
    lacking_memory();
    lacking_memory_for_a_place();
    files_remove();
    return check_done();
}
