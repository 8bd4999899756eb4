/* HTTP requests, all made by one thread with libcurl's multi interface.
 *
 * HTTP/1.1, at most HTTP_CONNECTIONS to a host. The thread starts with the first request, with all signals blocked, and
 * ends with the process. It validates each answer (answer.h), follows redirects itself, so that credentials reach only
 * the origin that they are for, and repeats what failed for a passing reason from the byte that was reached, until
 * nothing new has come for as long as options.h allows. An answer with another range than was asked for is tried again
 * with a new connection, twice. A query or a credential is in no error. */
#pragma once

#include "base/buffer.h"
#include "remote/answer.h"
#include "remote/uri.h"

enum {
    HTTP_CONNECTIONS = 16, /* to one host */
    HTTP_UNDER_WAY = 32,   /* requests in all: where redirects lead from one host to another, both are busy */
    HTTP_HINTED = 12,      /* of these, at most so many for requests that nobody waits for yet */
    HTTP_HOPS = 5,         /* redirects for one request */
};

/* Headers that only the server of one origin may see: one header, or those that sign() makes for each request. */
struct http_credential {
    const char *origin; /* as in struct uri */
    const char *header; /* "Authorization: Bearer ..."; NULL: requests are signed */
    /* Appends headers, a line each. It is called by the thread of this module and must not wait. */
    void (*sign)(const char *scope, const struct uri *uri, struct buffer *headers);
    const char *scope; /* for sign() */
};

/* Copies a credential, which may be NULL. */
const struct http_credential *http_credential_copy(const struct http_credential *credential, struct arena *arena);

struct http_result {
    enum verdict verdict;        /* TAKE, WHOLE, EMPTY or SAME; CHANGED or REFUSED; RETRY: given up */
    const struct answer *answer; /* the last one; its status is 0 if there was none */
    const struct uri *uri;       /* where it came from, after redirects */
    const struct error *error;   /* of a failure, without the object's name */
    const char *refusal;         /* the beginning of the body of an answer that nobody takes; "": it has none */
};

struct http_request {
    struct uri uri;
    const struct http_credential *credential; /* NULL: none */
    const char *condition;                    /* a header under which the server may answer VERDICT_SAME; NULL: none */
    struct question question;
    bool is_urgent;

    /* All are called by the thread of this module and must not wait. `take` gets the bytes in order, with the place
     * of the first in the object; of VERDICT_WHOLE all bytes of the object. False ends the request: the bytes cannot
     * be kept. `done` is called once. `begin`, which may be NULL, is called before the bytes of each answer with the
     * place that it came from; false if they are not of the object that was known: it counts as changed. */
    bool (*begin)(void *context, const struct uri *uri, const struct answer *answer);
    bool (*take)(void *context, uint64_t offset, const void *bytes, size_t length);
    void (*done)(void *context, const struct http_result *result);
    void *context;
};

/* Queues a request, whose texts must live until it is done. Never waits. Urgent requests come before others. */
void http_submit(const struct http_request *request);

/* Makes the queued request of that context urgent, if there is one. */
void http_hurry(const void *context);

/* Requests whose answers are small and kept in memory: lists, and the first contact with files. */

struct exchange {
    /* what to ask: of the request all but its functions. The texts are copied */
    struct http_request request;
    size_t limit; /* more bytes than this are a failure */

    /* what came: texts and bytes in the arena of the call */
    enum verdict verdict;
    struct answer answer;
    struct uri uri;       /* that answered, after redirects */
    unsigned char *bytes; /* and a NUL after them */
    size_t length;
    struct error error;  /* of a failure, without a name */
    const char *refusal; /* as in struct http_result */
};

/* Makes all requests at once and waits until each is done or has failed. Returns false only if the waiting ends
 * earlier: the reader was interrupted, or wfs is ending. */
bool exchange_all(struct exchange *exchanges, size_t count, struct arena *arena, struct error *error);
