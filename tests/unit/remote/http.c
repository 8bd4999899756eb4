/* A server of prepared answers on loopback: each request takes the next one. */
#include "remote/http.h"

#include "base/buffer.h"
#include "remote/libcurl.h"
#include "remote/options.h"

#include "tests/unit/check.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_REQUESTS = 16 };

struct server {
    int listening;
    int port;
    const char *const *answers;
    char requests[MAX_REQUESTS][2048];
    int n_requests;
    pthread_t thread;
};

/* Reads one request, up to its empty line. */
static bool read_request(int connection, char *request, size_t capacity)
{
    size_t length = 0;
    while (length + 1 < capacity && (length < 4 || memcmp(request + length - 4, "\r\n\r\n", 4) != 0)) {
        if (read(connection, request + length, 1) != 1)
            return false;
        length++;
    }
    request[length] = '\0';
    return true;
}

/* One answer for each connection, which is then closed. A NULL ends it. */
static void *serve(void *context)
{
    struct server *server = context;
    for (const char *const *answer = server->answers; *answer != NULL; answer++) {
        int connection = accept(server->listening, NULL, NULL);
        if (connection < 0)
            break;
        if (read_request(connection, server->requests[server->n_requests], sizeof server->requests[0])) {
            server->n_requests++;
            if (write(connection, *answer, strlen(*answer)) < 0)
                perror("write");
        }
        close(connection);
    }
    return NULL;
}

static void start(struct server *server, const char *const *answers)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    *server = (struct server){.listening = socket(AF_INET, SOCK_STREAM, 0), .answers = answers};
    if (bind(server->listening, (struct sockaddr *)&address, length) != 0 || listen(server->listening, 16) != 0 ||
        getsockname(server->listening, (struct sockaddr *)&address, &length) != 0)
        abort();
    server->port = ntohs(address.sin_port);
    pthread_create(&server->thread, NULL, serve, server);
}

static void finish(struct server *server)
{
    shutdown(server->listening, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listening);
}

struct outcome_of {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    enum verdict verdict;
    char message[sizeof((struct error *)NULL)->message], uri[512];
    char bytes[512];
};

static bool take(void *context, uint64_t offset, const void *bytes, size_t length)
{
    struct outcome_of *outcome = context;
    if (offset + length > sizeof outcome->bytes - 1)
        return false;
    memcpy(outcome->bytes + offset, bytes, length);
    return true;
}

static void done(void *context, const struct http_result *result)
{
    struct outcome_of *outcome = context;
    pthread_mutex_lock(&outcome->lock);
    outcome->verdict = result->verdict;
    if (result->verdict >= VERDICT_RETRY)
        strcpy(outcome->message, result->error->message);
    snprintf(outcome->uri, sizeof outcome->uri, "%s", result->uri->text);
    outcome->done = true;
    pthread_cond_signal(&outcome->changed);
    pthread_mutex_unlock(&outcome->lock);
}

static const struct question range = {true, false, 2, 5, SIZE_UNKNOWN, NULL};

static struct outcome_of ask(const struct server *server, const struct question *question)
{
    struct outcome_of outcome = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct arena *arena = arena_new();
    struct error error;
    struct http_request request = {.question = *question, .take = take, .done = done, .context = &outcome};
    if (!uri_parse(arena_printf(arena, "http://127.0.0.1:%d/m?sig=secret", server->port), arena, &request.uri, &error))
        abort();
    const struct http_credential credential = {request.uri.origin, "Authorization: Bearer token"};
    request.credential = &credential;
    http_submit(&request);
    pthread_mutex_lock(&outcome.lock);
    while (!outcome.done)
        pthread_cond_wait(&outcome.changed, &outcome.lock);
    pthread_mutex_unlock(&outcome.lock);
    arena_free(arena);
    CHECK_NAMED(strstr(outcome.message, "secret") == NULL && strstr(outcome.message, "token") == NULL, "no secret");
    return outcome;
}

static void one_range(void)
{
    struct server server;
    start(&server, (const char *const[]){
                       "HTTP/1.1 206 X\r\nContent-Range: bytes 2-6/10\r\nContent-Length: 5\r\n\r\ncdefg", NULL});
    struct outcome_of outcome = ask(&server, &range);
    CHECK(outcome.verdict == VERDICT_TAKE);
    CHECK_TEXT(outcome.bytes + 2, "cdefg");
    finish(&server);
    CHECK(strstr(server.requests[0], "GET /m?sig=secret HTTP/1.1\r\n") != NULL);
    CHECK(strstr(server.requests[0], "\r\nRange: bytes=2-6\r\n") != NULL);
    CHECK(strstr(server.requests[0], "\r\nAccept-Encoding: identity\r\n") != NULL);
    CHECK(strstr(server.requests[0], "\r\nAuthorization: Bearer token\r\n") != NULL);
}

/* The rest is asked for from the byte that was reached, and of the same object. */
static void broken_off(void)
{
    struct server server;
    start(&server,
          (const char *const[]){
              "HTTP/1.1 206 X\r\nETag: \"v\"\r\nContent-Range: bytes 2-6/10\r\nContent-Length: 5\r\n\r\ncd",
              "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n",
              "HTTP/1.1 206 X\r\nETag: \"v\"\r\nContent-Range: bytes 4-6/10\r\nContent-Length: 3\r\n\r\nefg", NULL});
    struct outcome_of outcome = ask(&server, &range);
    CHECK(outcome.verdict == VERDICT_TAKE);
    CHECK_TEXT(outcome.bytes + 2, "cdefg");
    finish(&server);
    CHECK(server.n_requests == 3 && strstr(server.requests[2], "\r\nRange: bytes=4-6\r\n") != NULL);
    CHECK(strstr(server.requests[2], "\r\nIf-Match: \"v\"\r\n") != NULL);
}

static void changed_meanwhile(void)
{
    struct server server;
    start(&server,
          (const char *const[]){"HTTP/1.1 206 X\r\nETag: \"v\"\r\nContent-Range: bytes 2-6/10\r\n\r\ncd",
                                "HTTP/1.1 206 X\r\nETag: \"w\"\r\nContent-Range: bytes 4-6/10\r\n\r\nefg", NULL});
    CHECK(ask(&server, &range).verdict == VERDICT_CHANGED);
    finish(&server);
}

static void no_ranges(void)
{
    struct server server;
    start(&server, (const char *const[]){"HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\nabc",
                                         "HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\nabcdefghij", NULL});
    struct outcome_of outcome = ask(&server, &range);
    CHECK(outcome.verdict == VERDICT_WHOLE);
    CHECK_TEXT(outcome.bytes, "abcdefghij");
    finish(&server);
}

static void too_many_bytes(void)
{
    struct server server;
    static const char answer[] = "HTTP/1.1 206 X\r\nContent-Range: bytes 2-6/10\r\n\r\ncdefghij";
    start(&server, (const char *const[]){answer, answer, answer, NULL});
    struct outcome_of outcome = ask(&server, &range);
    CHECK(outcome.verdict == VERDICT_REFUSED);
    CHECK_TEXT(outcome.message, "the server sends more bytes than were asked for");
    finish(&server);
    CHECK(server.n_requests == 3);
}

/* A proxy answers with the bytes of another request, and then with a range of another length. */
static void wrong_ranges(void)
{
    struct server server;
    start(&server, (const char *const[]){"HTTP/1.1 206 X\r\nContent-Range: bytes 3-7/10\r\n\r\ndefgh",
                                         "HTTP/1.1 206 X\r\nContent-Range: bytes 2-3/10\r\n\r\ncd",
                                         "HTTP/1.1 206 X\r\nContent-Range: bytes 2-6/10\r\n\r\ncdefg", NULL});
    struct outcome_of outcome = ask(&server, &range);
    CHECK(outcome.verdict == VERDICT_TAKE);
    CHECK_TEXT(outcome.bytes + 2, "cdefg");
    finish(&server);
}

static void refusals(void)
{
    struct server server;
    start(&server, (const char *const[]){"HTTP/1.1 403 X\r\nContent-Length: 9\r\n\r\nexpired\x1b!",
                                         "HTTP/1.1 404 X\r\nContent-Length: 9\r\n\r\nnot found", NULL});
    CHECK_TEXT(ask(&server, &range).message, "the server answers with status 403: expired\\x1b!");
    CHECK_TEXT(ask(&server, &range).message, "the server answers with status 404");
    finish(&server);
}

/* Another port is another origin. */
static void redirected(void)
{
    struct server from, to;
    char location[256];
    snprintf(location, sizeof location, "HTTP/1.1 302 X\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n");
    start(&to, (const char *const[]){"HTTP/1.1 206 X\r\nContent-Range: bytes 2-6/10\r\n\r\ncdefg", NULL});
    char away[256];
    snprintf(away, sizeof away, "HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:%d/cdn?sig=2\r\n\r\n", to.port);
    start(&from, (const char *const[]){location, away, NULL});
    struct outcome_of outcome = ask(&from, &range);
    CHECK(outcome.verdict == VERDICT_TAKE && strstr(outcome.uri, "/cdn?sig=2") != NULL);
    finish(&from);
    finish(&to);
    CHECK_NAMED(strstr(from.requests[1], "GET /again HTTP/1.1") != NULL, "a relative redirect");
    CHECK_NAMED(strstr(from.requests[1], "Authorization") != NULL, "the same origin sees the credential");
    CHECK_NAMED(strstr(to.requests[0], "Authorization") == NULL, "another origin does not");
}

static void redirect_loop(void)
{
    static const char again[] = "HTTP/1.1 302 X\r\nLocation: /m\r\n\r\n";
    struct server server;
    start(&server, (const char *const[]){again, again, again, again, again, again, NULL});
    CHECK_TEXT(ask(&server, &range).message, "the server redirects too often, perhaps in a loop");
    finish(&server);
    CHECK(server.n_requests == HTTP_HOPS + 1);
    start(&server, (const char *const[]){"HTTP/1.1 302 X\r\nLocation: http://192.0.2.1/m\r\n\r\n", NULL});
    CHECK_TEXT(ask(&server, &range).message,
               "the server redirects to http on another machine, where others can read and change the bytes");
    finish(&server);
    start(&server, (const char *const[]){"HTTP/1.1 302 X\r\nLocation: file:///etc/passwd\r\n\r\n", NULL});
    CHECK(ask(&server, &range).verdict == VERDICT_REFUSED);
    finish(&server);
}

static void endless_headers(void)
{
    struct server server;
    struct buffer answer = {0};
    buffer_append_text(&answer, "HTTP/1.1 206 X\r\n");
    for (int i = 0; i < 3000; i++)
        buffer_printf(&answer, "X-%d: 0123456789012345678901234567890\r\n", i);
    buffer_append(&answer, "\r\n", 3);
    start(&server, (const char *const[]){(const char *)answer.bytes, NULL});
    CHECK_TEXT(ask(&server, &range).message, "the headers of the server's answer are too long");
    finish(&server);
    buffer_free(&answer);
}

/* No server answers any more: a first contact is given up before the time limit. */
static void unreachable(void)
{
    struct server server;
    start(&server, (const char *const[]){NULL});
    finish(&server);
    CHECK(ask(&server, &range).verdict == VERDICT_REFUSED);
}

int main(void)
{
    struct error error;
    CHECK(libcurl_load(&error));
    signal(SIGPIPE, SIG_IGN);
    setenv("no_proxy", "127.0.0.1", 1);
    one_range();
    broken_off();
    changed_meanwhile();
    no_ranges();
    too_many_bytes();
    wrong_ranges();
    refusals();
    redirected();
    redirect_loop();
    endless_headers();
    unreachable();
    return check_done();
}
