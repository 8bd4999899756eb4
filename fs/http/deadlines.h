/* Times by which the headers of a request must be complete. libmicrohttpd ends connections on which nothing comes for a
 * while; a client that sends a byte of a header now and then would keep its connection for ever.
 *
 * Each connection has one deadline, whose owner adds it when the connection starts and removes it before the socket is
 * closed. A thread shuts sockets down whose deadline has passed; what serves the connection then finds its end. */
#pragma once

#include "base/error.h"

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
