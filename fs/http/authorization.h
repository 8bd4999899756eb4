/* Tokens of clients. Source: RFC 9110, section 11.6.2; RFC 7617 (Basic). */
#pragma once

#include <stdbool.h>

/* Reports whether an Authorization header has the token: "Bearer TOKEN", as clients of the hub send it, or Basic with
 * the token as the password and any name, as clients of registries do. Takes a time that does not depend on where a
 * token of the right length differs. `header` may be NULL. */
bool authorization_has_token(const char *header, const char *token);
