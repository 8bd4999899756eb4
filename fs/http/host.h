/* Which names a request may give the server. A page in a browser can make its own name stand for this machine's address
 * (DNS rebinding) and would then read whatever a server without a token answers, so such a server answers to names that
 * no page can have: those of loopback, and those that the user gives. */
#pragma once

#include <stdbool.h>

/* Reports whether a Host header, with or without a port, names loopback: localhost or a name below it, 127.0.0.0/8, or
 * ::1; or one of `names`, which commas separate (NULL: none), in letters of any case. */
bool host_is_allowed(const char *host, const char *names);
