/* Whose requests a server answers: of clients that have its token, or that use a name which no page in a browser has.
 *
 * A page can make its own name stand for this machine's address (DNS rebinding) and would then read whatever a server
 * without a token answers, so such a server answers to names that no page can have: those of loopback, and those that
 * the user gives. Source: RFC 9110, section 11.6.2; RFC 7617 (Basic). */
#pragma once

#include <stdbool.h>

/* Reports whether an Authorization header has the token: "Bearer TOKEN", as clients of the hub send it, or Basic with
 * the token as the password and any name, as clients of registries do. Takes a time that does not depend on where a
 * token of the right length differs. `header` may be NULL. */
bool access_has_token(const char *header, const char *token);

/* Reports whether a Host header, with or without a port, names loopback: localhost or a name below it, 127.0.0.0/8, or
 * ::1; or one of `names`, which commas separate (NULL: none), in letters of any case. */
bool access_by_name(const char *host, const char *names);
