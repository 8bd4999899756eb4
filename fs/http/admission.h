/* Which requests a server answers: whose (access.c), of which form (framing.c), and until when (deadlines.c). */
#pragma once

#include "base/error.h"
#include "fs/http/libmicrohttpd.h"

#include <stdbool.h>

/* Whose requests a server answers: of clients that have its token, or that use a name which no page in a browser has.
 *
 * A page can make its own name stand for this machine's address (DNS rebinding) and would then read whatever a server
 * without a token answers, so such a server answers to names that no page can have: those of loopback, and those that
 * the user gives. Source: RFC 9110, section 11.6.2; RFC 7617 (Basic). */

/* Reports whether an Authorization header has the token: "Bearer TOKEN", as clients of the hub send it, or Basic with
 * the token as the password and any name, as clients of registries do. Takes a time that does not depend on where a
 * token of the right length differs. `header` may be NULL. */
bool access_has_token(const char *header, const char *token);

/* Reports whether a Host header, with or without a port, names loopback: localhost or a name below it, 127.0.0.0/8, or
 * ::1; or one of `names`, which commas separate (NULL: none), in letters of any case. */
bool access_by_name(const char *host, const char *names);

/* Refusals of requests whose end or server is not certain. Another program on the way, such as a proxy, may read such a
 * request differently, and take a part of it for a request of its own.
 *
 * libmicrohttpd accepts most of them, or waits for a body that has no end. Source: RFC 9112, sections 3.2, 5.1, 6.1 and
 * 6.3. */

enum { FRAMING_PARAMETERS = 64 /* in a query; libmicrohttpd has no memory for hundreds, and then answers nothing */ };

/* Judges the headers of a request with that version. Returns 0, or the status of the refusal and its reason. */
unsigned framing_judge(struct MHD_Connection *connection, const char *version, const char **ret_reason);

/* Reports whether the target of a request has more than FRAMING_PARAMETERS. */
bool framing_is_too_long(const char *target);

/* Times by which the headers of a request must be complete. libmicrohttpd ends connections on which nothing comes for a
 * while; a client that sends a byte of a header now and then would keep its connection for ever.
 *
 * Each connection has one deadline, whose owner adds it when the connection starts and removes it before the socket is
 * closed. A thread shuts sockets down whose deadline has passed; what serves the connection then finds its end. */

struct deadlines;
struct deadline;

/* Starts the thread. A request may take `seconds` for its headers. NULL, with the error, if no thread can be had. */
struct deadlines *deadlines_new(unsigned seconds, struct error *error);

/* Ends the thread. Every deadline must have been removed. NULL is allowed. */
void deadlines_free(struct deadlines *deadlines);

/* Adds the deadline of a new connection, which runs from now on. The socket stays the caller's. */
struct deadline *deadline_add(struct deadlines *deadlines, int socket);
void deadline_remove(struct deadline *deadline);

void deadline_stop(struct deadline *deadline);  /* the headers are here */
void deadline_renew(struct deadline *deadline); /* the answer has been sent: the next request may begin */
