/* Serves repositories over HTTP/1.1 with libmicrohttpd: a few threads, each with many connections by epoll. Requests
 * that may have to wait, for the plan of a file or for bytes of a remote source, leave these threads, so that neither a
 * slow client nor a stalled source holds up others. Only GET and HEAD are answered. */
#pragma once

#include "fs/http/repository.h"

struct server;

struct server_options {
    const char *listen; /* "127.0.0.1:8090", "[::1]:0"; port 0 chooses a free port */
    const char *token;  /* that clients must send (Authorization: Bearer); NULL: none */
    bool is_public;     /* other machines may connect without a token, by any name of this server */
    const char *hosts;  /* names besides loopback's that clients without a token may use (admission.h); NULL: none */
    bool verbose;       /* one line on stderr for each request */
};

/* Starts to listen and to answer. Fails for an address other than loopback, unless the options have a token or are
 * public. With systemd's socket activation, the socket that is passed is used and `listen` is not. The repositories
 * must outlive the server. Call libmicrohttpd_load() first: a library may lie where the sandbox forbids to look. */
struct server *server_start(const struct repositories *repositories, const struct server_options *options,
                            struct error *error);

/* The address to connect to: "127.0.0.1:8090". */
const char *server_address(const struct server *server);

/* Ends all connections and frees. Ends all waits for remote bytes in this process, for good. */
void server_stop(struct server *server);
