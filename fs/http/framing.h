/* Refusals of requests whose end or server is not certain. Another program on the way, such as a proxy, may read such a
 * request differently, and take a part of it for a request of its own.
 *
 * libmicrohttpd accepts most of them, or waits for a body that has no end. Source: RFC 9112, sections 3.2, 5.1, 6.1 and
 * 6.3. */
#pragma once

#include "fs/http/libmicrohttpd.h"

enum { FRAMING_PARAMETERS = 64 /* in a query; libmicrohttpd has no memory for hundreds, and then answers nothing */ };

/* Judges the headers of a request with that version. Returns 0, or the status of the refusal and its reason. */
unsigned framing_judge(struct MHD_Connection *connection, const char *version, const char **ret_reason);

/* Reports whether the target of a request has more than FRAMING_PARAMETERS. */
bool framing_is_too_long(const char *target);
