/* Servers that cannot be reached: who asks them again soon gets the last failure at once, instead of waiting for the
 * time limit once more. For the thread of http.c alone.
 *
 * A server is down from a request that was given up without any answer. After OUTAGE_PAUSE, one request may try it
 * again, and others still fail at once until that request has ended. Any answer ends the outage. */
#pragma once

#include "base/error.h"

#include <stdint.h>

enum { OUTAGE_PAUSE = 2000 /* milliseconds */, OUTAGE_SERVERS = 64 /* that are remembered */ };

/* Reports whether a request to the server of that origin (uri.h) must fail now, with the error. `now` is in
 * milliseconds of CLOCK_MONOTONIC. False lets it be sent: outage_begin() or outage_end() must follow. */
bool outage_refuses(const char *origin, int64_t now, struct error *error);

/* Records that a server cannot be reached, and why. */
void outage_begin(const char *origin, int64_t now, const struct error *reason);

/* Records that a server has answered. */
void outage_end(const char *origin);
