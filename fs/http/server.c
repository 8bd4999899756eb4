#include "fs/http/server.h"

#include "base/arrival.h"
#include "base/attempt.h"
#include "base/pool.h"
#include "base/report.h"
#include "base/system.h"
#include "base/text.h"
#include "fs/http/admission.h"
#include "fs/http/answer.h"
#include "fs/http/body.h"
#include "fs/http/metrics.h"
#include "fs/http/protocols.h"
#include "fs/http/s3.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MAX_CONNECTIONS = 512,
    IDLE_SECONDS = 60,
    HEADER_SECONDS = 60, /* for all headers of a request */
    HEADER_BYTES = 32 * 1024,
    MIN_THREADS = 4,
    ADDRESS_TEXT = INET6_ADDRSTRLEN + 10,
    ACTIVATED_SOCKET = 3, /* sd_listen_fds(3) */
};

struct server {
    const struct repositories *repositories;
    struct server_options options;
    struct MHD_Daemon *daemon;
    int listening; /* descriptor */
    char address[ADDRESS_TEXT];
    struct metrics metrics;
    struct bodies bodies;
    struct digests *digests;
    struct blob_places *places;
    struct deadlines *deadlines;
};

/* A request from its first line to its end. */
struct exchange {
    struct server *server;
    struct MHD_Connection *connection;
    struct arena *arena;
    const char *method, *target; /* the path, without its query */
    const char *query;
    const char *target_end; /* of the whole target, in the memory of libmicrohttpd: only the place counts */
    const char *host;       /* the server that the target names; NULL: the Host header does */
    struct http_request request;
    struct buffer body; /* its beginning */
    size_t body_length;
    struct route route;
    struct answer answer;
    bool has_answer; /* which the exchange owns */
    unsigned status;
    uint64_t n_bytes;
    struct timespec begun;
};

/* Takes the answer. */
static struct MHD_Response *make_response(struct exchange *exchange, struct MHD_Connection *connection)
{
    struct answer *answer = &exchange->answer;
    exchange->has_answer = false;
    if (answer->is_file)
        return body_response(&exchange->server->bodies, connection, answer, exchange->target);
    struct MHD_Response *response =
        libmicrohttpd.create_response_from_buffer(answer->text.length, answer->text.bytes, MHD_RESPMEM_MUST_COPY);
    answer_free(answer);
    return response;
}

static enum MHD_Result send_answer(struct exchange *exchange, struct MHD_Connection *connection)
{
    const struct answer *answer = &exchange->answer;
    struct http_header headers[ANSWER_MAX_HEADERS];
    size_t n_headers = answer->n_headers;
    unsigned status = answer->status;
    exchange->status = status;
    if (!exchange->request.head)
        exchange->n_bytes = answer->is_file ? answer->length : answer->text.length;
    for (size_t i = 0; i < n_headers; i++)
        headers[i] =
            (struct http_header){answer->headers[i].name, arena_strdup(exchange->arena, answer->headers[i].value)};
    struct MHD_Response *response = make_response(exchange, connection);
    if (response == NULL)
        return MHD_NO;
    for (size_t i = 0; i < n_headers; i++)
        libmicrohttpd.add_response_header(response, headers[i].name, headers[i].value);
    libmicrohttpd.add_response_header(response, "X-Content-Type-Options", "nosniff");
    libmicrohttpd.add_response_header(response, "Server", "wfs/" WFS_VERSION);
    enum MHD_Result queued = libmicrohttpd.queue_response(connection, status, response);
    libmicrohttpd.destroy_response(response);
    return queued;
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
    return libmicrohttpd.lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* A number of the query; 0 if it is missing or invalid. */
static size_t query_number(struct MHD_Connection *connection, const char *name)
{
    const char *text = libmicrohttpd.lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
    unsigned long long number = text != NULL && *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : 0;
    return number < UINT32_MAX ? (size_t)number : 0;
}

/* The values of a header that may be repeated: as RFC 9110 has it, they are one list. */
struct joined {
    const char *name, *text;
    size_t count;
    struct arena *arena;
};

static enum MHD_Result join_value(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct joined *joined = context;
    if (strcasecmp(name, joined->name) != 0 || value == NULL)
        return MHD_YES;
    joined->text = joined->count++ == 0 ? value : arena_printf(joined->arena, "%s, %s", joined->text, value);
    return MHD_YES;
}

static const char *list_of(struct MHD_Connection *connection, const char *name, struct arena *arena)
{
    struct joined joined = {.name = name, .arena = arena};
    libmicrohttpd.get_connection_values(connection, MHD_HEADER_KIND, join_value, &joined);
    return joined.text;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* Reports whether a proxy on this machine passes on a request that came to it by https. */
static bool is_from_https(struct MHD_Connection *connection)
{
    const char *scheme = header_of(connection, "X-Forwarded-Proto");
    const union MHD_ConnectionInfo *client =
        libmicrohttpd.get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return scheme != NULL && strcasecmp(scheme, "https") == 0 && client != NULL && is_loopback(client->client_addr);
}

/* Returns how the client addresses the server: "http://HOST". A Host header that is none is not repeated, since answers
 * have this text in links. */
static const char *origin_of(const struct exchange *exchange)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]";
    const char *host = exchange->host != NULL ? exchange->host : header_of(exchange->connection, "Host");
    if (host == NULL || *host == '\0' || host[strspn(host, letters)] != '\0')
        host = exchange->server->address;
    return arena_printf(exchange->arena, "%s://%s", is_from_https(exchange->connection) ? "https" : "http", host);
}

/* Reports whether a browser sends the request for a page of another site. Source: Fetch Metadata Request Headers. */
static bool is_cross_site(struct MHD_Connection *connection)
{
    const char *site = header_of(connection, "Sec-Fetch-Site");
    return site != NULL && strcasecmp(site, "cross-site") == 0;
}

/* All headers of a request. */
struct all_headers {
    struct http_header *items;
    size_t count;
    struct arena *arena;
};

static enum MHD_Result add_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct all_headers *headers = context;
    headers->items = arena_grow(headers->arena, headers->items, headers->count, sizeof *headers->items);
    headers->items[headers->count++] = (struct http_header){name, value != NULL ? value : ""};
    return MHD_YES;
}

static struct http_request read_request(const struct exchange *exchange)
{
    struct MHD_Connection *connection = exchange->connection;
    struct arena *arena = exchange->arena;
    struct all_headers headers = {.arena = arena};
    libmicrohttpd.get_connection_values(connection, MHD_HEADER_KIND, add_header, &headers);
    const char *recursive = libmicrohttpd.lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "recursive");
    return (struct http_request){
        .method = exchange->method,
        .path = exchange->target,
        .query = exchange->query,
        .headers = headers.items,
        .n_headers = headers.count,
        .body = (const char *)exchange->body.bytes,
        .body_length = exchange->body_length,
        .head = strcmp(exchange->method, "HEAD") == 0,
        .range = list_of(connection, "Range", arena),
        .if_range = list_of(connection, "If-Range", arena),
        .if_match = list_of(connection, "If-Match", arena),
        .if_none_match = list_of(connection, "If-None-Match", arena),
        .if_modified_since = list_of(connection, "If-Modified-Since", arena),
        .origin = origin_of(exchange),
        .is_cross_site = is_cross_site(connection),
        .accept = list_of(connection, "Accept", arena),
        .user_agent = header_of(connection, "User-Agent"),
        .recursive = recursive != NULL && (strcasecmp(recursive, "true") == 0 || strcmp(recursive, "1") == 0),
        .cursor = query_number(connection, "cursor"),
        .limit = query_number(connection, "limit"),
    };
}

static bool is_registry_route(enum route_kind kind)
{
    return kind == ROUTE_REGISTRY || kind == ROUTE_TAGS || kind == ROUTE_MANIFEST || kind == ROUTE_BLOB ||
           kind == ROUTE_REFERRERS;
}

/* Answers probes, which have no token and know no name of this server. */
static void answer_health(struct answer *answer)
{
    answer_header(answer, "Content-Type", "text/plain");
    buffer_append_text(&answer->text, "ok\n");
}

/* Reports whether the client uses a name of this server that only its user can give it. */
static bool has_allowed_host(const struct exchange *exchange, struct MHD_Connection *connection)
{
    const struct server_options *options = &exchange->server->options;
    const char *host = exchange->host != NULL ? exchange->host : header_of(connection, "Host");
    return options->token != NULL || options->is_public || host == NULL || access_by_name(host, options->hosts);
}

static const char *methods_of(const struct exchange *exchange)
{
    enum route_kind kind = exchange->route.kind;
    return kind == ROUTE_PAGE || kind == ROUTE_OWNER || kind == ROUTE_PATH ? DAV_METHODS : "GET, HEAD";
}

/* Answers what needs no file: refusals, probes and counters. Returns false for other requests. */
static bool answer_at_once(struct exchange *exchange, struct MHD_Connection *connection)
{
    struct answer *answer = &exchange->answer;
    const char *token = exchange->server->options.token;
    bool takes_password = exchange->route.kind == ROUTE_DAV || is_registry_route(exchange->route.kind);
    if (exchange->route.kind == ROUTE_HEALTH) {
        answer_health(answer);
    } else if (!has_allowed_host(exchange, connection)) {
        answer_fail(
            answer, 421, NULL,
            "without a token this server answers only to localhost; --host=NAME adds a name, and --token-file a token");
    } else if (exchange->route.kind == ROUTE_S3) {
        return s3_refuse(&exchange->request, token, answer);
    } else if (exchange->route.kind != ROUTE_DAV && !exchange->request.head && strcmp(exchange->method, "GET") != 0) {
        answer_fail(answer, 405, NULL, "wfs serves files to read: only %s are answered here", methods_of(exchange));
        answer_header(answer, "Allow", "%s", methods_of(exchange));
    } else if (token != NULL && !access_has_token(header_of(connection, "Authorization"), token)) {
        answer_fail(answer, 401, is_registry_route(exchange->route.kind) ? "UNAUTHORIZED" : NULL,
                    "this server asks for a token: set HF_TOKEN to it");
        answer_header(answer, "WWW-Authenticate", "%s", takes_password ? "Basic realm=\"wfs\"" : "Bearer");
    } else if (exchange->route.kind == ROUTE_METRICS) {
        metrics_answer(&exchange->server->metrics, answer);
    } else if (exchange->route.kind == ROUTE_UNKNOWN) {
        answer_fail(answer, 404, "EntryNotFound", "not found; the index at / lists all models");
    } else {
        return false;
    }
    return true;
}

/* Answers what may have to plan files. */
static void make_answer(void *context)
{
    struct exchange *exchange = context;
    const struct server *server = exchange->server;
    answer_begin(&exchange->answer);
    protocols_answer(&(struct served){server->repositories, server->digests, server->places}, &exchange->request,
                     &exchange->route, &exchange->answer);
}

static void answer_unavailable(struct exchange *exchange, const char *why)
{
    answer_begin(&exchange->answer);
    answer_fail(&exchange->answer, 503, NULL, "%s", why);
}

static void answer_and_resume(void *unused, void *item)
{
    struct exchange *exchange = item;
    struct error error;
    if (!attempt(make_answer, exchange, &error))
        answer_unavailable(exchange, error.message);
    repository_report(repository_find_any_case(exchange->server->repositories, exchange->route.repository));
    exchange->has_answer = true;
    libmicrohttpd.resume_connection(exchange->connection);
}

/* Suspends the connection until the answer is made, on a thread that may wait for plans and networks. */
static void answer_later(struct exchange *exchange, struct MHD_Connection *connection)
{
    libmicrohttpd.suspend_connection(connection);
    if (waits_add(exchange->server->bodies.waits, answer_and_resume, NULL, exchange))
        return;
    answer_unavailable(exchange, "no thread can answer, or the server ends");
    exchange->has_answer = true;
    libmicrohttpd.resume_connection(exchange->connection);
}

static void watch_connection(void *context, struct MHD_Connection *connection, void **deadline,
                             enum MHD_ConnectionNotificationCode what)
{
    const struct server *server = context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED)
        deadline_remove(*deadline);
    else
        *deadline =
            deadline_add(server->deadlines,
                         libmicrohttpd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
}

static struct deadline *deadline_of(struct MHD_Connection *connection)
{
    return libmicrohttpd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* Answers where libmicrohttpd would not, and ends the connection. What does not fit the socket's buffer is lost. */
static void refuse_target(struct MHD_Connection *connection)
{
    static const char text[] = "HTTP/1.1 414 URI Too Long\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    int fd = libmicrohttpd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    send(fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(fd, SHUT_RDWR);
}

/* Called at the first line of a request, with its whole target, before anything is decoded. */
static void *begin_exchange(void *context, const char *target, struct MHD_Connection *connection)
{
    struct exchange *exchange = memory_alloc(sizeof *exchange);
    struct arena *arena = arena_new();
    *exchange = (struct exchange){.connection = connection, .server = context, .arena = arena};
    exchange->target = route_path(arena_strndup(arena, target, strcspn(target, "?")), &exchange->host, arena);
    const char *query = strchr(target, '?');
    exchange->query = arena_strdup(arena, query != NULL ? query + 1 : "");
    exchange->target_end = target + strlen(target);
    clock_gettime(CLOCK_MONOTONIC, &exchange->begun);
    if (framing_is_too_long(target))
        refuse_target(connection);
    return exchange;
}

/* Refuses a request before its body is read, which ends the connection. */
static enum MHD_Result refuse(struct exchange *exchange, unsigned status, const char *reason)
{
    answer_begin(&exchange->answer);
    answer_fail(&exchange->answer, status, NULL, "%s", reason);
    answer_header(&exchange->answer, "Connection", "close");
    return send_answer(exchange, exchange->connection);
}

/* Judges a request of which only the headers are here: an answer now ends the connection. libmicrohttpd ends the target
 * at its first NUL, and gives the version from the place after its real end. */
static enum MHD_Result judge(struct exchange *exchange, const char *version)
{
    const char *reason, *end = exchange->target_end;
    bool has_nul = version > end + 1 && version < end + HEADER_BYTES;
    unsigned status = has_nul ? 400 : framing_judge(exchange->connection, version, &reason);
    if (has_nul)
        reason = "the target of the request has a NUL";
    return status != 0 ? refuse(exchange, status, reason) : MHD_YES;
}

/* Keeps the beginning of a body. */
static void take_body(struct exchange *exchange, const char *bytes, size_t length)
{
    size_t room = REQUEST_MOST_BODY - exchange->body.length;
    buffer_append(&exchange->body, bytes, length < room ? length : room);
    exchange->body_length += length;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_length, void **exchange_of)
{
    struct exchange *exchange = *exchange_of;
    if (exchange->method == NULL) { /* only the headers are here; an answer now would end the connection */
        exchange->method = arena_strdup(exchange->arena, method);
        deadline_stop(deadline_of(connection));
        return judge(exchange, version);
    }
    if (*upload_length != 0) {
        take_body(exchange, upload, *upload_length);
        *upload_length = 0;
        return MHD_YES;
    }
    if (exchange->has_answer) /* after answer_later() */
        return send_answer(exchange, connection);
    exchange->request = read_request(exchange);
    exchange->route = route_parse(exchange->target, exchange->arena);
    if (s3_is_asked(&exchange->request, &exchange->route))
        exchange->route = route_parse_s3(exchange->target, exchange->arena);
    else if (dav_is_asked(&exchange->request, &exchange->route))
        exchange->route.kind = ROUTE_DAV;
    answer_begin(&exchange->answer);
    if (answer_at_once(exchange, connection))
        return send_answer(exchange, connection);
    answer_free(&exchange->answer);
    answer_later(exchange, connection);
    return MHD_YES;
}

/* Writes the address of the client, without its port: "127.0.0.1". */
static const char *client_of(struct MHD_Connection *connection, char out[INET6_ADDRSTRLEN])
{
    const union MHD_ConnectionInfo *client =
        libmicrohttpd.get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    socklen_t length = client == NULL                               ? 0
                       : client->client_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                                    : sizeof(struct sockaddr_in);
    if (length == 0 || getnameinfo(client->client_addr, length, out, INET6_ADDRSTRLEN, NULL, 0, NI_NUMERICHOST) != 0)
        strcpy(out, "-");
    return out;
}

static void log_exchange(const struct exchange *exchange, double seconds, bool is_whole)
{
    char client[INET6_ADDRSTRLEN], date[sizeof "2026-11-29T14:45:00Z"];
    struct tm utc = {0};
    time_t now = time(NULL);
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    report("%s %s %s %s: %u, %llu bytes, %.3f s%s", date, client_of(exchange->connection, client), exchange->method,
           exchange->target, exchange->status, (unsigned long long)exchange->n_bytes, seconds,
           is_whole ? "" : ", ended early");
}

static void end_exchange(void *context, struct MHD_Connection *connection, void **exchange_of,
                         enum MHD_RequestTerminationCode how)
{
    struct exchange *exchange = *exchange_of;
    if (exchange == NULL)
        return;
    deadline_renew(deadline_of(connection));
    struct server *server = exchange->server;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds =
        (double)(now.tv_sec - exchange->begun.tv_sec) + (double)(now.tv_nsec - exchange->begun.tv_nsec) / 1e9;
    metrics_add_request(&server->metrics, exchange->status, seconds);
    if (server->options.verbose && exchange->method != NULL)
        log_exchange(exchange, seconds, how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    if (exchange->has_answer)
        answer_free(&exchange->answer);
    buffer_free(&exchange->body);
    arena_free(exchange->arena);
    free(exchange);
    *exchange_of = NULL;
}

/* Reports whether a text is a port: getaddrinfo() cuts larger numbers, and takes none for port 0. */
static bool is_port(const char *text)
{
    size_t n_digits = strspn(text, "0123456789");
    return n_digits > 0 && text[n_digits] == '\0' && strtoul(text, NULL, 10) <= UINT16_MAX;
}

/* Splits "HOST:PORT" or "[HOST]:PORT" and resolves it. NULL on failure. */
static struct addrinfo *resolve(const char *listen, struct error *error)
{
    const char *colon = strrchr(listen, ':');
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *found = NULL;
    struct arena *arena = arena_new();
    if (colon == NULL || colon == listen) {
        error_set(error, "'%s' is no address to listen at; write HOST:PORT, as in 127.0.0.1:8090", listen);
    } else {
        bool bracketed = *listen == '[' && colon[-1] == ']';
        const char *host = arena_strndup(arena, listen + bracketed, (size_t)(colon - listen) - 2 * bracketed);
        int failure = is_port(colon + 1) ? getaddrinfo(host, colon + 1, &hints, &found) : 0;
        if (!is_port(colon + 1))
            error_set(error, "cannot listen at '%s': the port is not a number from 0 to %d", listen, UINT16_MAX);
        else if (failure != 0)
            error_set(error, "cannot listen at '%s': %s", listen, gai_strerror(failure));
    }
    arena_free(arena);
    return found;
}

/* Opens the listening socket. */
static bool open_socket(struct server *server, struct error *error)
{
    const char *listen_at = server->options.listen;
    struct addrinfo *address = resolve(listen_at, error);
    int on = 1;
    if (address == NULL)
        return false;
    bool done = false;
    if ((server->listening = system_socket(address->ai_family, SOCK_STREAM, 0)) < 0 ||
        fcntl(server->listening, F_SETFL, O_NONBLOCK) != 0 ||
        setsockopt(server->listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(server->listening, address->ai_addr, address->ai_addrlen) != 0 ||
        listen(server->listening, SOMAXCONN) != 0)
        error_set_errno(error, errno, "cannot listen at '%s'", listen_at);
    else
        done = true;
    freeaddrinfo(address);
    return done;
}

/* Takes the socket that systemd passes, or opens one. */
static bool take_socket(struct server *server, struct error *error)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    server->listening = -1;
    if (pid == NULL || count == NULL || strtol(pid, NULL, 10) != (long)getpid())
        return open_socket(server, error);
    if (strcmp(count, "1") != 0)
        return error_set(error, "systemd passes %s sockets; wfs serve takes one", count);
    server->listening = ACTIVATED_SOCKET;
    return true;
}

/* Writes the address of the socket; fails if strangers could connect to it. */
static bool find_address(struct server *server, struct error *error)
{
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    char host[INET6_ADDRSTRLEN], port[8];
    if (getsockname(server->listening, (struct sockaddr *)&bound, &length) != 0)
        return error_set_errno(error, errno, "the listening socket");
    if (getnameinfo((struct sockaddr *)&bound, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return error_set(error, "the listening socket has no address of the internet");
    snprintf(server->address, sizeof server->address, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
    return is_loopback((struct sockaddr *)&bound) || server->options.token != NULL || server->options.is_public ||
           error_set(error,
                     "%s is open to other machines; add --token-file=FILE, so that clients need a token, or --public",
                     server->address);
}

static bool start(struct server *server, struct error *error)
{
    unsigned n_threads = pool_width() > MIN_THREADS ? (unsigned)pool_width() : MIN_THREADS;
    if (!take_socket(server, error) || !find_address(server, error) ||
        (server->deadlines = deadlines_new(HEADER_SECONDS, error)) == NULL)
        return false;
    server->daemon = libmicrohttpd.start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, server,
        MHD_OPTION_LISTEN_SOCKET, server->listening, MHD_OPTION_THREAD_POOL_SIZE, n_threads,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_URI_LOG_CALLBACK, begin_exchange, server, MHD_OPTION_NOTIFY_COMPLETED, end_exchange, server,
        MHD_OPTION_NOTIFY_CONNECTION, watch_connection, server, MHD_OPTION_END);
    return server->daemon != NULL || error_set(error, "the HTTP server cannot start: %s", strerror(errno));
}

static void free_server(struct server *server)
{
    waits_free(server->bodies.waits);
    digests_free(server->digests);
    blob_places_free(server->places);
    read_ahead_free(server->bodies.ahead);
    deadlines_free(server->deadlines);
    free(server);
}

static void count_digest_bytes(void *metrics, uint64_t n_bytes)
{
    metrics_add_digest_bytes(metrics, n_bytes);
}

struct server *server_start(const struct repositories *repositories, const struct server_options *options,
                            struct error *error)
{
    struct server *server = memory_alloc(sizeof *server);
    *server = (struct server){.repositories = repositories, .options = *options};
    server->bodies =
        (struct bodies){waits_new(MAX_CONNECTIONS * BODY_BLOCKS, WAITS_IDLE), read_ahead_new(), &server->metrics};
    server->digests = digests_new(true, count_digest_bytes, &server->metrics);
    server->places = blob_places_new();
    if (start(server, error))
        return server;
    if (server->listening >= 0)
        close(server->listening);
    free_server(server);
    return NULL;
}

const char *server_address(const struct server *server)
{
    return server->address;
}

void server_stop(struct server *server)
{
    arrival_give_up();
    atomic_store(&server->bodies.ending, true);
    digests_end(server->digests);
    waits_end(server->bodies.waits); /* the daemon cannot end with suspended connections */
    libmicrohttpd.stop_daemon(server->daemon);
    free_server(server);
}
